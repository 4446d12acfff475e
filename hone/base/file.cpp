#include "hone/base/file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <system_error>

#include "hone/base/error.hpp"
#include "hone/base/format.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;

constexpr auto unfinished_extension = ".partial";

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

[[noreturn]] void fail(const fs::path& path, std::string_view doing) {
  throw Error(detail::format("{}: {} failed: {}", path.string(), doing, std::strerror(errno)));
}

// A failure names the file that is to be on the disk, whatever the name of what is synced.
void sync(const fs::path& path, int flags, const fs::path& named) {
  const int descriptor = open(path.c_str(), flags | O_CLOEXEC);
  if (descriptor < 0) fail(named, "opening");
  const int status = fsync(descriptor);
  const int error = errno;
  close(descriptor);
  errno = error;
  if (status != 0 && error != EINVAL) fail(named, "syncing");  // EINVAL: a file system without syncing
}

}  // namespace

void place_file(const fs::path& finished, const fs::path& destination) {
  std::error_code ignored;
  if (fs::exists(destination, ignored) && !fs::is_regular_file(destination, ignored))
    throw Error(detail::format("{}: cannot be replaced: it is no regular file", destination.string()));
  sync(finished, O_RDONLY, destination);
  if (std::rename(finished.c_str(), destination.c_str()) != 0) fail(destination, "renaming to this name");
  sync(destination.has_parent_path() ? destination.parent_path() : fs::path("."), O_RDONLY | O_DIRECTORY, destination);
}

void sync_file(const fs::path& path) { sync(path, O_RDONLY, path); }

fs::path unfinished_name(const fs::path& destination) {
  return destination.string() + detail::format(".{}{}", getpid(), unfinished_extension);
}

bool is_unfinished(const fs::path& path) { return path.extension() == unfinished_extension; }

void write_file(const fs::path& destination, std::span<const std::uint8_t> bytes,
                const std::function<void()>& before_placing) {
  const fs::path aside = unfinished_name(destination);
  try {
    std::unique_ptr<std::FILE, Close> file(std::fopen(aside.c_str(), "wb"));
    if (!file) fail(destination, "opening");
    if (std::fwrite(bytes.data(), 1, bytes.size(), file.get()) != bytes.size()) fail(destination, "writing");
    if (std::fclose(file.release()) != 0) fail(destination, "writing");
    if (before_placing) {
      sync(aside, O_RDONLY, destination);
      before_placing();
    }
    place_file(aside, destination);
  } catch (const Error&) {
    std::error_code ignored;
    fs::remove(aside, ignored);
    throw;
  }
}

void write_file(const fs::path& destination, std::string_view text) {
  write_file(destination, {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

std::string read_file(const fs::path& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored))
    throw InputError(detail::format("{}: is a folder; expected a file", path.string()));
  std::ifstream file(path, std::ios::binary);
  if (!file) throw InputError(detail::format("{}: cannot be read: {}", path.string(), std::strerror(errno)));
  constexpr std::size_t longest = std::size_t{1} << 28;  // of a device or a pipe, which may have no end
  const bool endless = !fs::is_regular_file(path, ignored);
  std::string content;
  std::string piece(1 << 16, '\0');
  do {
    file.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    content.append(piece, 0, static_cast<std::size_t>(file.gcount()));
    if (endless && content.size() > longest)
      throw InputError(detail::format("{}: no end after {} bytes; expected a file", path.string(), content.size()));
  } while (file);
  if (file.bad()) throw InputError(detail::format("{}: cannot be read", path.string()));
  return content;
}

std::string environment(const char* name, const char* otherwise) {
  const char* const value = std::getenv(name);
  return value && *value ? value : otherwise;
}

fs::path cache_folder() {
  if (const fs::path cache = environment("XDG_CACHE_HOME"); cache.is_absolute()) return cache / "hone";
  if (const fs::path home = environment("HOME"); !home.empty()) return home / ".cache" / "hone";
  return {};
}

}  // namespace hone
