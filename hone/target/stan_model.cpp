#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <future>
#include <vector>

#include "hone/base/error.hpp"
#include "hone/base/file.hpp"
#include "hone/base/format.hpp"
#include "hone/base/process.hpp"
#include "hone/base/sha256.hpp"
#include "hone/target/stan.hpp"
#include "hone/target/stan_source.hpp"
#include "hone/target/stan_translator.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;

// A checksum of a list of texts; different lists have different checksums.
std::string key_of(const std::vector<std::string>& texts) {
  Sha256 sum;
  for (const std::string& text : texts) {
    const std::string piece = detail::format("{}:{}", text.size(), text);
    sum.update({reinterpret_cast<const std::uint8_t*>(piece.data()), piece.size()});
  }
  return sum.hex().substr(0, 24);
}

// A lock on a name: while one process makes the file, the others wait.
class MakingLock {
 public:
  explicit MakingLock(const fs::path& path) : descriptor_(::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644)) {
    if (descriptor_ < 0) throw Error(detail::format("{}: cannot be opened", path.string()));
    int status = 0;
    while ((status = ::flock(descriptor_, LOCK_EX)) != 0 && errno == EINTR) continue;
    held_ = status == 0;
  }
  ~MakingLock() { ::close(descriptor_); }
  MakingLock(const MakingLock&) = delete;
  MakingLock& operator=(const MakingLock&) = delete;
  bool held() const {
    return held_;
  }  // false on a file system without locks: then every process makes the file, and the last one stays

 private:
  int descriptor_;
  bool held_ = false;
};

// A temporary work folder in the folder of `made`, removed at the end with everything in it.
class WorkFolder {
 public:
  explicit WorkFolder(const fs::path& made) {
    std::string name = made.string() + ".making-XXXXXX";
    if (!::mkdtemp(name.data()))
      throw Error(detail::format("{}: no folder can be made there", made.parent_path().string()));
    path_ = name;
  }
  // Removes the work folders of processes that were killed.
  static void remove_left(const fs::path& made) {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(made.parent_path(), ignored))
      if (entry.path().filename().string().starts_with(made.filename().string() + ".making-"))
        fs::remove_all(entry.path(), ignored);
  }
  ~WorkFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

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

void run_compiler(const std::vector<std::string>& words, const fs::path& program) {
  const Finished finished = run_program(words);
  if (finished.status == program_not_found)
    throw InputError(detail::format("{}: the compiler {} is missing; to install it:\n  {}", program.string(),
                                    words.front(), StanTools::install));
  if (finished.status != 0)
    throw Error(detail::format("{}: its translation does not compile ({} ended with {}):\n{}", program.string(),
                               words.front(), finished.status, end_of(finished.output)));
}

fs::path cache_of(const StanOptions& options) {
  const fs::path cache = !options.cache.empty()   ? options.cache
                         : cache_folder().empty() ? fs::path()
                                                  : cache_folder() / "stan";
  if (cache.empty()) throw InputError("there is no folder for compiled models: set XDG_CACHE_HOME or HOME");
  std::error_code error;
  fs::create_directories(cache, error);
  if (!fs::is_directory(cache)) throw InputError(detail::format("{}: this folder cannot be made", cache.string()));
  return cache;
}

// Makes `made` unless it exists: make(work folder) returns the finished file inside that folder.
template <class Make>
void make_once(const fs::path& made, Make&& make) {
  if (fs::exists(made)) return;
  const MakingLock lock(fs::path(made) += ".lock");
  if (fs::exists(made)) return;
  if (lock.held()) WorkFolder::remove_left(made);
  const WorkFolder work(made);
  const fs::path finished = make(work.path());
  const fs::path aside = fs::path(made) += detail::format(".{}.partial", ::getpid());
  fs::rename(finished, aside);
  place_file(aside, made);
}

// Compiles with BridgeStan's own makefile in the work folder, so that nothing is written next to the user's program.
// Messages, including those of the running model, name the program itself, since the work folder will be gone.
fs::path build_with_bridgestan(const fs::path& bridgestan, const fs::path& program, const StanSource& source,
                               const fs::path& work) {
  const std::string name = c_name(program);
  write_file(work / (name + ".stan"), source.text);
  const std::string flags = detail::format("STANCFLAGS={} --filename-in-msg={}.stan", environment("STANCFLAGS"),
                                           name);  // BridgeStan may add to it
  const auto make = [&](const fs::path& file) {
    // If hone itself runs under make, that make's flags are not passed on to BridgeStan.
    const Finished finished = run_program({"env", "-u", "MAKEFLAGS", "-u", "MFLAGS", "-u", "MAKELEVEL", flags, "make",
                                           "--silent", "-C", bridgestan.string(), "STAN_THREADS=true", file.string()});
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

fs::path compile_with_bridgestan(const fs::path& folder, const fs::path& program, const StanSource& source,
                                 const StanOptions& options) {
  std::error_code error;
  const fs::path bridgestan = fs::canonical(folder, error);
  if (error || !fs::is_regular_file(bridgestan / "Makefile"))
    throw InputError(
        detail::format("BRIDGESTAN={}: is not a folder of BridgeStan; expected one with a Makefile", folder.string()));
  std::vector<std::string> decisive = {"bridgestan", bridgestan.string(), source.text, environment("CXX"),
                                       environment("STANCFLAGS")};
  for (const char* file : {"Makefile", "make/local", "src/version.hpp", "stan/src/stan/version.hpp"})
    decisive.push_back(fs::is_regular_file(bridgestan / file) ? read_file(bridgestan / file) : "");
  const fs::path library = cache_of(options) / detail::format("{}-{}.so", c_name(program), key_of(decisive));
  make_once(library, [&](const fs::path& work) {
    tell(options, detail::format("compiling {} with BridgeStan; the next time it starts at once", program.string()));
    return build_with_bridgestan(bridgestan, program, source, work);
  });
  return library;
}

std::vector<std::string> compile_words(const StanTools& tools, const std::string& compiler) {
  std::vector<std::string> words = {
      compiler, "-std=c++14", "-w", "-O2", "-fPIC", "-fvisibility=hidden", "-DBOOST_DISABLE_ASSERTS"};
  for (const fs::path& folder : tools.includes) words.push_back("-I" + folder.string());
  return words;
}

// Compiles with Stan's translator in R and our own wrapper, which is compiled once for all models.
fs::path compile_with_rstan(const fs::path& program, const StanSource& source, const StanOptions& options) {
  const StanTools tools = find_stan_tools();
  const std::string compiler = environment("CXX", "g++");
  const Finished version = run_program({compiler, "--version"});
  if (version.status != 0)
    throw InputError(detail::format("the compiler {} is missing; to install it:\n  {}", compiler, StanTools::install));
  const std::vector<std::string> words = compile_words(tools, compiler);
  std::string flags;
  for (const std::string& word : words) flags += word + "\n";
  const std::string tool_key = key_of({std::string(stan_wrapper()), tools.versions, version.output, flags});
  const std::string text = to_stan_2_21(source.text);
  const fs::path cache = cache_of(options);
  const fs::path library = cache / detail::format("{}-{}.so", c_name(program), key_of({"rstan", tool_key, text}));
  const fs::path wrapper = cache / detail::format("wrapper-{}.o", tool_key);
  make_once(library, [&](const fs::path& work) {
    const std::string code = translate_stan(tools, program, source, text, work);
    tell(options,
         detail::format("compiling {}: about half a minute; the next time it starts at once", program.string()));
    const auto compile = [&](const fs::path& from, const fs::path& to) {
      std::vector<std::string> command = words;
      command.insert(command.end(), {"-c", from.string(), "-o", to.string()});
      run_compiler(command, program);
    };
    auto wrapped = std::async(std::launch::async, [&] {
      make_once(wrapper, [&](const fs::path& own) {
        write_file(own / "wrapper.cpp", stan_wrapper());
        compile(own / "wrapper.cpp", own / "wrapper.o");
        return own / "wrapper.o";
      });
    });
    write_file(work / "model.cpp", code);
    compile(work / "model.cpp", work / "model.o");
    wrapped.get();
    run_compiler({compiler, "-shared", "-o", (work / "model.so").string(), (work / "model.o").string(),
                  wrapper.string(), tools.archive.string()},
                 program);
    return work / "model.so";
  });
  return library;
}

}  // namespace

fs::path compile_stan(const fs::path& program, const StanOptions& options) {
  const StanSource source = read_stan(program);
  if (source.text.find_first_not_of(" \t\r\n") == std::string::npos)
    throw InputError(detail::format("{}: is empty; expected a Stan program", program.string()));
  const std::string bridgestan = environment("BRIDGESTAN");
  return bridgestan.empty() ? compile_with_rstan(program, source, options)
                            : compile_with_bridgestan(bridgestan, program, source, options);
}

}  // namespace hone
