#include "app/run/run_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <sstream>
#include <string_view>

#include "app/run/json.hpp"
#include "app/run/toml.hpp"
#include "hone/base/error.hpp"
#include "hone/base/file.hpp"

namespace hone {
namespace fs = std::filesystem;
namespace {

// Whether a folder holds nothing but files that a killed process had not finished writing.
bool holds_nothing(const fs::path& folder, std::error_code& error) {
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (!is_unfinished(entry.path())) return false;
  return !error;
}

Json summary_in(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(folder / "summary.json", ignored) ? parse_json(read_file(folder / "summary.json")) : Json();
}

// The keys of config.toml; none if it cannot be read.
toml::table config_in(const fs::path& folder) {
  std::error_code ignored;
  if (!fs::is_regular_file(folder / "config.toml", ignored)) return {};
  try {
    return parse_toml(read_file(folder / "config.toml"), "config.toml");
  } catch (const toml::parse_error&) {
    return {};
  }
}

// The command that wrote a run folder: by its summary, or, while there is none, by keys that only this command has.
std::string command_of(const fs::path& folder) {
  const Json summary = summary_in(folder);
  const toml::table config = config_in(folder);
  const auto said = [&](const char* key) { return summary.is_object() && summary.contains(key); };
  if (said("verdict") || config.contains("tolerance_mean")) return "fit";
  if (said("target") || config.contains("rate_weight")) return "toy";
  return said("us_per_iteration") || config.contains("rate_model") ? "train" : "";
}

}  // namespace

void check_can_make_folder(const fs::path& path) {
  std::error_code error;
  if (fs::is_symlink(path, error) && !fs::exists(path, error))
    throw InputError(fmt::format("{}: expected a folder, or a name for one; this link leads nowhere", path.string()));
  fs::path there = fs::absolute(path, error);  // the deepest part that exists
  while (!fs::exists(there, error) && there != there.parent_path()) there = there.parent_path();
  if (!fs::is_directory(there, error))
    throw InputError(fmt::format("{}: expected a folder, or a name for one; {} is a file", path.string(),
                                 there.filename().string()));
  // A folder is tried: where root may write by its permissions, a file system such as /proc refuses.
  const fs::path attempt = unfinished_name(there / "folder");
  const bool made = ::mkdir(attempt.c_str(), S_IRWXU) == 0;
  if (!made && errno != EEXIST)  // it exists where another thread tries just now
    throw InputError(
        fmt::format("{}: cannot write in the folder {}: {}", path.string(), there.string(), std::strerror(errno)));
  if (made) ::rmdir(attempt.c_str());
}

void RunFolder::check(const fs::path& path, Reuse reuse) {
  check_can_make_folder(path);
  std::error_code error;
  if (!fs::exists(path, error) || (reuse == Reuse::run && fs::exists(path / "config.toml", error))) return;
  if (!holds_nothing(path, error))
    throw InputError(fmt::format("{}: the folder is not empty; choose another one", path.string()));
}

RunFolder::RunFolder(fs::path path, Reuse reuse) : path_(std::move(path)) {
  check(path_, reuse);
  std::error_code error;
  fs::create_directories(path_, error);
  if (error) throw InputError(fmt::format("{}: cannot create this folder: {}", path_.string(), error.message()));
}

fs::path RunFolder::figures() const {
  fs::create_directories(path_ / "figures");
  return path_ / "figures";
}

void RunFolder::clear() const {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(path_, ignored)) fs::remove_all(entry.path(), ignored);
}

void RunFolder::remove_unfinished() const {
  for (const auto& entry : fs::directory_iterator(path_))
    if (is_unfinished(entry.path())) fs::remove(entry.path());
}

FolderLock::FolderLock(const fs::path& folder)
    : descriptor_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (descriptor_ < 0 || ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
  ::close(descriptor_);
  throw InputError(fmt::format("{}: another process is using this folder", folder.string()));
}

FolderLock::~FolderLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

fs::path free_folder(const fs::path& parent, const std::string& name) {
  fs::path path = parent / name;
  for (int i = 2; fs::exists(path); ++i) path = parent / fmt::format("{}-{}", name, i);
  return path;
}

CsvFile::CsvFile(const fs::path& path, const std::string& header) : path_(path), file_(path) { row(header); }

CsvFile::CsvFile(const fs::path& path, const std::string& header, std::uint32_t kept) : path_(path) {
  std::string content = header + "\n", line;
  std::istringstream lines(fs::exists(path) ? read_file(path) : "");
  std::getline(lines, line);                           // the header
  while (std::getline(lines, line) && !lines.eof()) {  // a row without its newline was cut off by a crash
    std::uint32_t iteration = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), iteration);
    if (error != std::errc() || !std::string_view(end).starts_with(',') || iteration > kept) break;
    content += line + "\n";
    last_kept_ = line;
  }
  write_file(path, content);
  file_.open(path, std::ios::app);
}

void CsvFile::row(const std::string& cells) {
  file_ << cells << '\n' << std::flush;
  if (!file_) throw Error(fmt::format("{}: cannot be written", path_.string()));
}

void CsvFile::sync() { sync_file(path_); }

std::vector<fs::path> seed_folders(const fs::path& folder) {
  std::vector<std::pair<unsigned long long, fs::path>> found;
  std::error_code none;
  if (fs::exists(folder / "config.toml", none)) return {};
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    unsigned long long seed = 0;
    if (std::sscanf(entry.path().filename().c_str(), "seed-%llu", &seed) == 1 &&
        fs::exists(entry.path() / "config.toml", none))
      found.emplace_back(seed, entry.path());
  }
  std::ranges::sort(found);
  std::vector<fs::path> folders;
  for (auto& [seed, path] : found) folders.push_back(std::move(path));
  return folders;
}

void check_is_of(const std::string& command, const fs::path& folder) {
  const std::string is = command_of(folder);
  if (is.empty() || is == command) return;
  const std::string report = fmt::format("'hone report {}'", folder.string());
  throw InputError(
      fmt::format("{}: this is a folder of hone {}; expected one of hone {}. {}", folder.string(), is, command,
                  is == "fit"     ? fmt::format("'hone summary {}' prints its table", folder.string())
                  : is == "train" ? fmt::format("'hone eval {}' evaluates it, and {} shows it", folder.string(), report)
                                  : report + " shows it"));
}

void check_is_training(const fs::path& folder) {
  if (const auto folders = seed_folders(folder); !folders.empty())
    throw InputError(fmt::format("{}: holds {} runs; expected one of them, such as {}", folder.string(), folders.size(),
                                 folders.front().string()));
  if (!fs::exists(folder / "config.toml"))
    throw InputError(fmt::format("{}: not the folder of a training run (no config.toml)", folder.string()));
  check_is_of("train", folder);
}

}  // namespace hone
