#include <unistd.h>

#include <algorithm>
#include <future>
#include <optional>
#include <vector>

#include "hone/base/error.hpp"
#include "hone/base/file.hpp"
#include "hone/base/format.hpp"
#include "hone/base/process.hpp"
#include "hone/target/stan.hpp"
#include "hone/target/stan_cache.hpp"
#include "hone/target/stan_data.hpp"
#include "hone/target/stan_install.hpp"
#include "hone/target/stan_source.hpp"
#include "hone/target/stan_translator.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;

void tell(const StanOptions& options, const std::string& text) {
  if (options.progress) options.progress(text);
}

// The last lines of a compiler's output.
std::string end_of(const std::string& output) {
  std::size_t from = output.size();
  for (int lines = 0; from > 0 && lines < 30; --from)
    if (output[from - 1] == '\n' && ++lines == 30) break;
  return output.substr(from);
}

// Runs the compiler; `what` begins the message if it fails.
void run_compiler(const std::vector<std::string>& words, const std::string& what, const StanOptions& options) {
  const Finished finished = run_program(words, {}, options.stop);
  if (finished.status != 0)
    throw Error(
        detail::format("{} ({} ended with {}):\n{}", what, words.front(), finished.status, end_of(finished.output)));
}

// Compiles with BridgeStan's own makefile in the work folder, so that nothing is written next to the user's program.
// Messages, including those of the running model, name the program itself, since the work folder will be gone.
fs::path build_with_bridgestan(const fs::path& bridgestan, const fs::path& program, const StanSource& source,
                               const fs::path& work, const StanOptions& options) {
  const std::string name = c_name(program);
  write_file(work / (name + ".stan"), source.text);
  const std::string flags = detail::format("STANCFLAGS={} --filename-in-msg={}.stan", environment("STANCFLAGS"),
                                           name);  // BridgeStan may add to it
  const auto make = [&](const fs::path& file) {
    // If hone itself runs under make, that make's flags are not passed on to BridgeStan.
    const Finished finished = run_program({"env", "-u", "MAKEFLAGS", "-u", "MFLAGS", "-u", "MAKELEVEL", flags, "make",
                                           "--silent", "-C", bridgestan.string(), "STAN_THREADS=true", file.string()},
                                          {}, options.stop);
    if (finished.status == program_not_found)
      throw InputError("make is missing; to install it:\n  apt-get install --no-install-recommends make g++");
    return finished;
  };
  const fs::path translated = work / (name + ".hpp"), library = work / (name + "_model.so");
  const Finished translation = make(translated);
  if (translation.status != 0 || !fs::exists(translated))
    throw translation_failure(program, source, detail::format("BridgeStan in {}", bridgestan.string()),
                              translation.output, "set BRIDGESTAN to the folder of a newer BridgeStan.");
  const Finished compilation = make(library);
  if (compilation.status != 0 || !fs::exists(library))
    throw Error(detail::format("{}: its translation does not compile (BridgeStan in {}):\n{}", program.string(),
                               bridgestan.string(), end_of(compilation.output)));
  return library;
}

fs::path bridgestan_folder(const fs::path& named) {
  std::error_code error;
  const fs::path folder = fs::canonical(named, error);
  if (error || !fs::is_regular_file(folder / "Makefile"))
    throw InputError(
        detail::format("BRIDGESTAN={}: is not a folder of BridgeStan; expected one with a Makefile", named.string()));
  return folder;
}

fs::path compile_with_bridgestan(const fs::path& folder, const fs::path& program, const StanSource& source,
                                 const StanOptions& options) {
  const fs::path bridgestan = bridgestan_folder(folder);
  std::vector<std::string> decisive = {"bridgestan", bridgestan.string(), source.text, environment("CXX"),
                                       environment("STANCFLAGS")};
  for (const char* file : {"Makefile", "make/local", "src/version.hpp", "stan/src/stan/version.hpp"})
    decisive.push_back(fs::is_regular_file(bridgestan / file) ? read_file(bridgestan / file) : "");
  const fs::path library = cache_of(options) / detail::format("{}-{}.so", c_name(program), key_of(decisive));
  make_once(library, options, [&](const fs::path& work) {
    read_stan_data(options.data);
    tell(options, detail::format("compiling {} with BridgeStan; the next time it starts at once", program.string()));
    return build_with_bridgestan(bridgestan, program, source, work, options);
  });
  return library;
}

// The program that a name stands for; empty if there is none.
fs::path program_of(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  const std::string path = environment("PATH");
  std::error_code ignored;
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t end = std::min(path.find(':', at), path.size());
    const fs::path program = fs::path(path.substr(at, end - at)) / name;
    if (::access(program.c_str(), X_OK) == 0 && !fs::is_directory(program, ignored)) return program;
    at = end + 1;
  }
  return {};
}

// What a compiler says of its version; nothing if it does not run. To start clang takes 20 ms or more, so the cache
// keeps its answer, for the file of this path, size and date.
std::optional<std::string> version_of(const std::string& name, const StanOptions& options) {
  std::error_code error;
  const fs::path program = fs::canonical(program_of(name), error);
  const std::string file = program.filename().string();
  const auto ask = [&]() -> std::optional<std::string> {
    const Finished asked = run_program({name, "--version"});
    if (asked.status != 0) return std::nullopt;
    return asked.output;
  };
  if (error || file.find("clang") == std::string::npos) return ask();
  const auto date = fs::last_write_time(program, error).time_since_epoch().count();
  const fs::path kept =
      cache_of(options) / detail::format("version-{}.txt", key_of({program.string(), std::to_string(date),
                                                                   std::to_string(fs::file_size(program, error))}));
  if (fs::exists(kept)) return read_file(kept);
  const std::optional<std::string> version = ask();
  if (version) try {
      make_once(kept, options, [&](const fs::path& work) {
        write_file(work / "version", *version);
        return work / "version";
      });
    } catch (const Stopped&) {
      throw;
    } catch (const std::exception&) {  // a cache that cannot be written: the next call asks again
    }
  return version;
}

// Whether clang++ is installed and finds a C++ library; remembered in the cache. `version` is what it says of itself.
bool clang_works(const std::string& version, const StanOptions& options) {
  try {
    make_once(cache_of(options) / detail::format("works-{}.o", key_of({version})), options, [&](const fs::path& work) {
      write_file(work / "probe.cpp", "#include <string>\nstd::string probe() { return {}; }\n");
      run_compiler({"clang++", "-std=c++17", "-c", (work / "probe.cpp").string(), "-o", (work / "probe.o").string()},
                   "clang++ does not work", options);
      return work / "probe.o";
    });
    return true;
  } catch (const Stopped&) {
    throw;
  } catch (const std::exception&) {
    return false;
  }
}

// The compiler for models: CXX; else clang++ for today's Stan, where it works, which takes half of g++'s time; else
// g++.
std::string compiler_name(const StanTools& tools, const StanOptions& options) {
  const std::string named = environment("CXX");
  if (!named.empty() || tools.kind == StanTools::Kind::rstan) return named.empty() ? "g++" : named;
  const std::optional<std::string> version = version_of("clang++", options);
  return version && clang_works(*version, options) ? "clang++" : "g++";
}

// A compiler with its flags for an installation of Stan, and the files that it shares among models.
struct Compiler {
  Compiler(const StanTools& stan, const StanOptions& options);

  void compile(const fs::path& from, const fs::path& to, const std::string& what) const;
  void make_wrapper() const;
  void make_header() const;
  void make_headers() const;
  int seconds() const;  // that a model takes, about

  const StanTools& tools;
  const StanOptions& options;
  std::vector<std::string> words;
  bool clang = false;
  std::string key;           // differs if any of it differs
  fs::path wrapper;          // the compiled wrapper
  fs::path header, headers;  // what every model includes first, and the same compiled
};

// What every model of httpstan includes first: Stan's headers, behind our own base class.
std::string header_text(const StanTools& tools) {
  const fs::path base = tools.translator.parent_path() / "include/stan/model/model_base_crtp.hpp";
  return (fs::exists(base) ? std::string(stan_model_base()) : "") + "#include <stan/model/model_header.hpp>\n";
}

Compiler::Compiler(const StanTools& stan, const StanOptions& given) : tools(stan), options(given) {
  const std::string name = compiler_name(stan, given);
  const std::optional<std::string> version = version_of(name, given);
  if (!version)
    throw InputError(detail::format("the compiler {} is missing; to install it:\n  {}", name, tools.install));
  clang = version->find("clang") != std::string::npos;
  words = {name, "-w", clang ? "-O1" : "-O2", "-fPIC", "-fvisibility=hidden", "-DBOOST_DISABLE_ASSERTS"};
  words.insert(words.end(), tools.compile.begin(), tools.compile.end());
  std::string flags;
  for (const std::string& word : words) flags += word + "\n";
  key = key_of(
      {std::string(stan_wrapper()), std::string(stan_json()), header_text(tools), tools.versions, *version, flags});
  const fs::path cache = cache_of(options);
  wrapper = cache / detail::format("wrapper-{}.o", key);
  header = cache / detail::format("stan-{}.hpp", key_of({header_text(tools), tools.versions, *version, flags}));
  headers = fs::path(header) += ".gch";
}

void Compiler::compile(const fs::path& from, const fs::path& to, const std::string& what) const {
  std::vector<std::string> command = words;
  if (from == header)
    command.insert(command.end(), {"-x", "c++-header"});
  else if (tools.kind == StanTools::Kind::httpstan)
    command.insert(command.end(), {"-include", header.string()});
  // clang instantiates the headers' templates once for all models; dates do not matter, since the name is a checksum
  if (from == header && clang)
    command.insert(command.end(), {"-fpch-instantiate-templates", "-Xclang", "-fno-pch-timestamp"});
  command.insert(command.end(), {"-c", from.string(), "-o", to.string()});
  try {
    run_compiler(command, what, options);
  } catch (const Error& error) {
    // clang's compiled headers know the place where they were made, and are of no use in a cache that was moved.
    const bool of_headers = clang && std::string_view(error.what()).find(headers.string()) != std::string_view::npos;
    std::error_code kept;
    if (!of_headers || !fs::remove(headers, kept)) throw;
    run_compiler(command, what, options);
  }
}

void Compiler::make_wrapper() const {
  make_once(wrapper, options, [&](const fs::path& work) {
    write_file(work / "wrapper.cpp", stan_wrapper());
    fs::create_directories(work / "hone/target/stan");
    write_file(work / "hone/target/stan/json.hpp", stan_json());
    write_file(work / "hone/target/stan/model_base.hpp", stan_model_base());
    std::vector<std::string> command = words;
    command.insert(command.end(),
                   {"-I" + work.string(), "-c", (work / "wrapper.cpp").string(), "-o", (work / "wrapper.o").string()});
    run_compiler(command, "the wrapper of Stan models does not compile", options);
    return work / "wrapper.o";
  });
}

void Compiler::make_header() const {
  make_once(header, options, [&](const fs::path& work) {
    write_file(work / "stan.hpp", header_text(tools));
    return work / "stan.hpp";
  });
}

void Compiler::make_headers() const {
  make_header();
  make_once(headers, options, [&](const fs::path& work) {
    tell(options,
         detail::format("compiling Stan's headers with {}, once: about {} seconds", words.front(), clang ? 20 : 60));
    compile(header, work / "headers", "Stan's headers do not compile");
    return work / "headers";
  });
}

int Compiler::seconds() const {
  if (clang) return fs::exists(headers) ? 6 : 15;
  return fs::exists(headers) ? 15 : 40;
}

// Compares data with what the program declares, before anything is compiled and also where the library is in the cache:
// the declarations are kept beside it.
void check_data(const fs::path& program, const fs::path& library, const StanOptions& options,
                const std::function<std::string(const fs::path& work)>& translate) {
  const auto data = read_stan_data(options.data);
  if (!data && !options.no_data) return;
  const fs::path kept = fs::path(library).replace_extension(".data");
  make_once(kept, options, [&](const fs::path& work) {
    write_file(work / "declared", declarations_in(translate(work)));
    return work / "declared";
  });
  const std::string declared = read_file(kept);
  if (data) check_stan_data(declared, *data, options.data);
  if (options.no_data) check_needs_no_data(declared, program);
}

// Compiles with a translator and our own wrapper, which is compiled once for all models.
fs::path compile_with(const StanTools& tools, const fs::path& program, const StanSource& source,
                      const StanOptions& options) {
  const bool old = tools.kind == StanTools::Kind::rstan;
  const Compiler compiler(tools, options);
  const Translation translation{program, source, old ? to_stan_2_21(source.text) : source.text};
  const std::string key = key_of({old ? "rstan" : "httpstan", compiler.key, translation.text});
  const fs::path library = cache_of(options) / detail::format("{}-{}.so", c_name(program), key);
  std::string code;
  const auto translate = [&](const fs::path& work) {
    if (code.empty()) code = translate_stan(tools, translation, work, options);
    return code;
  };
  if (old)
    read_stan_data(options.data);
  else
    check_data(program, library, options, translate);
  make_once(library, options, [&](const fs::path& work) {
    const std::string failure = detail::format("{}: its translation does not compile", program.string());
    write_file(work / "model.cpp", translate(work));
    const bool slow = !old && !fs::exists(compiler.headers);
    tell(options, detail::format("compiling {} with {} and {}: about {} seconds{}; the next time it starts at once",
                                 program.string(), tools.name, compiler.words.front(), compiler.seconds(),
                                 slow ? ", less after another 'hone stan install'" : ""));
    if (!old) compiler.make_header();
    auto wrapped = std::async(std::launch::async, [&] { compiler.make_wrapper(); });
    compiler.compile(work / "model.cpp", work / "model.o", failure);
    wrapped.get();
    std::vector<std::string> link = {
        compiler.words.front(),   "-shared", "-o", (work / "model.so").string(), (work / "model.o").string(),
        compiler.wrapper.string()};
    link.insert(link.end(), tools.link.begin(), tools.link.end());
    run_compiler(link, failure, options);
    return work / "model.so";
  });
  return library;
}

}  // namespace

fs::path compile_stan(const fs::path& program, const StanOptions& options) {
  const StanSource source = read_stan(program);
  if (source.text.find_first_not_of(" \t\r\n") == std::string::npos)
    throw InputError(detail::format("{}: is empty; expected a Stan program", program.string()));
  if (const auto today = find_httpstan(options)) return compile_with(*today, program, source, options);
  const std::string bridgestan = environment("BRIDGESTAN");
  return bridgestan.empty() ? compile_with(find_rstan(), program, source, options)
                            : compile_with_bridgestan(bridgestan, program, source, options);
}

std::string stan_in_use(const StanOptions& options) {
  if (const auto today = find_httpstan(options))
    return detail::format("{} in {}; the compiler is {}", today->name,
                          today->translator.parent_path().parent_path().string(), compiler_name(*today, options));
  const std::string bridgestan = environment("BRIDGESTAN");
  if (!bridgestan.empty()) return detail::format("BridgeStan in {}", bridgestan_folder(bridgestan).string());
  const StanTools tools = find_rstan();
  return detail::format("{} in {}; the compiler is {}", tools.name, tools.translator.string(),
                        compiler_name(tools, options));
}

fs::path install_stan(const fs::path& wheel, const StanOptions& options) {
  const fs::path folder = install_httpstan(wheel, options);
  const StanTools tools = find_httpstan(options).value();
  const Compiler compiler(tools, options);
  compiler.make_headers();
  return folder;
}

}  // namespace hone
