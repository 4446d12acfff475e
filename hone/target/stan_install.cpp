#include "hone/target/stan_install.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "hone/base/error.hpp"
#include "hone/base/file.hpp"
#include "hone/base/format.hpp"
#include "hone/base/process.hpp"
#include "hone/base/sha256.hpp"
#include "hone/target/stan_cache.hpp"
#include "hone/target/stan_translator.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;

// The version that hone is tested with, and the checksums of its wheels that we know.
constexpr std::string_view tested = "4.17.0";
struct KnownWheel {
  std::string_view file, sha256;
};
constexpr std::array known_wheels = {
    KnownWheel{"httpstan-4.17.0-cp312-cp312-manylinux2014_x86_64.manylinux_2_17_x86_64.whl",
               "7f73e29a415718ddc45e4703c0253a9d4adc6a21aa7110ccf36821a0f94202cd"}};
constexpr std::string_view prefix = "httpstan-";

std::string sha256_of(const std::string& bytes) {
  Sha256 sum;
  sum.update({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
  return sum.hex();
}

// A checksum as a wheel writes it, in URL-safe base64 without padding, in hexadecimal digits.
std::string hex_of_base64(std::string_view text) {
  constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  constexpr std::string_view digits = "0123456789abcdef";
  std::string result;
  unsigned bits = 0;
  int count = 0;
  for (const char letter : text) {
    const std::size_t value = letters.find(letter);
    if (value == std::string_view::npos) return {};
    bits = bits << 6 | static_cast<unsigned>(value);
    for (count += 6; count >= 4; count -= 4) result += digits[bits >> (count - 4) & 15];
  }
  return result.substr(0, 64);
}

// Runs Python; `failure` begins the message if that fails.
void run_python(std::vector<std::string> words, const std::string& failure, const StanOptions& options) {
  words.insert(words.begin(), "python3");
  const Finished finished = run_program(words, {}, options.stop);
  if (finished.status == program_not_found)
    throw InputError(
        "python3 is missing; to install it:\n  apt-get install --no-install-recommends python3 python3-pip");
  if (finished.output.find("No module named pip") != std::string::npos)
    throw InputError("Python's pip is missing; to install it:\n  apt-get install --no-install-recommends python3-pip");
  if (finished.status != 0) throw InputError(detail::format("{}:\n{}", failure, finished.output));
}

fs::path download(const fs::path& work, const StanOptions& options) {
  const std::string package = detail::format("httpstan=={}", tested);
  if (options.progress) options.progress(detail::format("downloading {} by pip: 35 MB", package));
  const fs::path folder = work / "wheel";
  run_python(
      {"-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
       "--only-binary=:all:", "--python-version", "3.12", "--dest", folder.string(), package},
      detail::format("pip cannot download {}; where there is no network, give the wheel: hone stan install --wheel "
                     "FILE. pip says",
                     package),
      options);
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".whl") return entry.path();
  throw Error(detail::format("pip has left no wheel of {}", package));
}

void check_wheel(const fs::path& wheel) {
  const std::string name = wheel.filename().string();
  const auto known =
      std::find_if(known_wheels.begin(), known_wheels.end(), [&](const KnownWheel& one) { return one.file == name; });
  if (known == known_wheels.end()) return;
  const std::string found = sha256_of(read_file(wheel));
  if (found != known->sha256)
    throw InputError(detail::format("{}: is damaged or not the published file: its SHA-256 is {}, expected {}",
                                    wheel.string(), found, known->sha256));
}

// Checks all files against the wheel's own list of checksums: NAME,sha256=…,SIZE per line.
void check_files(const fs::path& folder, const fs::path& record, const fs::path& wheel) {
  const std::string list = read_file(record);
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t end = std::min(list.find('\n', at), list.size());
    const std::string_view line = std::string_view(list).substr(at, end - at);
    at = end + 1;
    constexpr std::string_view mark = ",sha256=";
    const std::size_t name_end = line.find(mark);
    if (name_end == std::string_view::npos) continue;  // the list itself
    const std::string name(line.substr(0, name_end));
    const std::string_view sum = line.substr(name_end + mark.size());
    std::error_code ignored;
    if (!fs::is_regular_file(folder / name, ignored) ||
        sha256_of(read_file(folder / name)) != hex_of_base64(sum.substr(0, sum.find(','))))
      throw InputError(detail::format("{}: is damaged: the checksum of {} in it is wrong", wheel.string(), name));
  }
}

// Unpacks a wheel into the work folder and checks it. Returns its version.
std::string unpack(const fs::path& wheel, const fs::path& folder, const StanOptions& options) {
  if (options.progress) options.progress(detail::format("unpacking {}", wheel.filename().string()));
  run_python({"-m", "zipfile", "-e", wheel.string(), folder.string()},
             detail::format("{}: cannot be unpacked; expected a wheel of httpstan", wheel.string()), options);
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    constexpr std::string_view end = ".dist-info";
    if (!name.starts_with(prefix) || !name.ends_with(end)) continue;
    check_files(folder, entry.path() / "RECORD", wheel);
    for (const char* file : {"stanc", "include/stan/model/model_header.hpp", "lib/libtbb.so.2"})
      if (!fs::is_regular_file(folder / "httpstan" / file))
        throw InputError(
            detail::format("{}: holds no httpstan/{}: not a version that hone can use; it is tested with {}",
                           wheel.string(), file, tested));
    fs::permissions(folder / "httpstan/stanc", fs::perms::owner_all | fs::perms::group_exec | fs::perms::others_exec,
                    fs::perm_options::add);
    return name.substr(prefix.size(), name.size() - prefix.size() - end.size());
  }
  throw InputError(detail::format("{}: is not a wheel of httpstan", wheel.string()));
}

// The version in the file name of a wheel of httpstan.
std::string version_in(const fs::path& wheel) {
  const std::string name = wheel.filename().string();
  const std::size_t end = name.find('-', prefix.size());
  if (!name.starts_with(prefix) || end == std::string::npos || wheel.extension() != ".whl")
    throw InputError(detail::format("{}: expected a wheel of httpstan, httpstan-VERSION-….whl", wheel.string()));
  return name.substr(prefix.size(), end - prefix.size());
}

std::vector<int> numbers_of(std::string_view version) {
  std::vector<int> numbers;
  while (!version.empty()) {
    const std::size_t end = std::min(version.find('.'), version.size());
    std::from_chars(version.data(), version.data() + end, numbers.emplace_back());
    version.remove_prefix(std::min(end + 1, version.size()));
  }
  return numbers;
}

// The newest installation in a folder; empty if there is none.
fs::path newest_in(const fs::path& cache) {
  fs::path best;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(cache, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(prefix) || !fs::is_regular_file(entry.path() / "httpstan/stanc", ignored)) continue;
    if (name.find(".making-") != std::string::npos) continue;
    const auto version = [](const fs::path& path) {
      return numbers_of(path.filename().string().substr(prefix.size()));
    };
    if (best.empty() || version(best) < version(entry.path())) best = entry.path();
  }
  return best;
}

// "2.39.0", from Stan's header.
std::string stan_version(const fs::path& include) {
  const std::string text = read_file(include / "stan/version.hpp");
  std::string version;
  for (const std::string_view macro : {"#define STAN_MAJOR ", "#define STAN_MINOR ", "#define STAN_PATCH "}) {
    const std::size_t at = text.find(macro);
    if (at == std::string::npos) return "of an unknown version";
    const std::size_t begin = at + macro.size();
    version += (version.empty() ? "" : ".") + text.substr(begin, text.find_first_not_of("0123456789", begin) - begin);
  }
  return version;
}

}  // namespace

std::optional<StanTools> find_httpstan(const StanOptions& options) {
  fs::path folder = options.cache.empty() ? fs::path() : newest_in(options.cache);
  if (folder.empty() && !cache_folder().empty()) folder = newest_in(cache_folder() / "stan");
  if (folder.empty()) return std::nullopt;
  const fs::path package = fs::canonical(folder) / "httpstan", lib = package / "lib";
  StanTools tools;
  tools.kind = StanTools::Kind::httpstan;
  tools.name = detail::format("Stan {} (httpstan {})", stan_version(package / "include"),
                              folder.filename().string().substr(prefix.size()));
  tools.translator = package / "stanc";
  tools.compile = {"-std=c++17", "-DSTAN_THREADS", "-D_REENTRANT", "-DBOOST_PHOENIX_NO_VARIADIC_EXPRESSION",
                   "-I" + (package / "include").string()};
  for (const char* archive : {"cvodes", "idas", "kinsol", "nvecserial"})
    tools.link.push_back((lib / detail::format("libsundials_{}.a", archive)).string());
  tools.link.insert(tools.link.end(), {(lib / "libtbb.so.2").string(), "-Wl,-rpath," + lib.string()});
  tools.versions = tools.name;
  tools.install = "apt-get install --no-install-recommends g++";
  return tools;
}

fs::path install_httpstan(const fs::path& wheel, const StanOptions& options) {
  std::error_code ignored;
  if (!wheel.empty() && !fs::is_regular_file(wheel, ignored))
    throw InputError(detail::format("{}: there is no such file; expected a wheel of httpstan", wheel.string()));
  const std::string version = wheel.empty() ? std::string(tested) : version_in(wheel);
  const fs::path installed = cache_of(options) / (std::string(prefix) + version);
  make_once(installed, options, [&](const fs::path& work) {
    const fs::path file = wheel.empty() ? download(work, options) : fs::absolute(wheel);
    check_wheel(file);
    const fs::path folder = work / "unpacked";
    const std::string found = unpack(file, folder, options);
    if (found != version)
      throw InputError(detail::format("{}: holds version {}; expected {}", file.string(), found, version));
    return folder;
  });
  return installed;
}

}  // namespace hone
