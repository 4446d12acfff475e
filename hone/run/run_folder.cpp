#include "hone/run/run_folder.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <iterator>
#include <unistd.h>

#include "hone/base/error.hpp"

namespace hone {
namespace fs = std::filesystem;
namespace {

class Descriptor {
 public:
  Descriptor(const fs::path& path, int flags) : fd_(::open(path.c_str(), flags, 0666)) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

[[noreturn]] void fail(const fs::path& path, const char* what) {
  throw Error(fmt::format("{}: {}: {}", path.string(), what, std::strerror(errno)));
}

}  // namespace

void write_file(const fs::path& path, const std::string& content) {
  const fs::path aside = path.string() + ".partial";
  {
    const Descriptor file(aside, O_WRONLY | O_CREAT | O_TRUNC);
    if (file.get() < 0) fail(path, "cannot be written");
    for (std::size_t done = 0; done < content.size();) {
      const ssize_t written = ::write(file.get(), content.data() + done, content.size() - done);
      if (written < 0) fail(path, "cannot be written");
      done += static_cast<std::size_t>(written);
    }
    if (::fsync(file.get()) != 0) fail(path, "cannot be written");
  }
  if (std::rename(aside.c_str(), path.c_str()) != 0) fail(path, "cannot be put in place");
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string content{std::istreambuf_iterator<char>(file), {}};
  if (!file || file.bad() || std::filesystem::is_directory(path))
    throw InputError(fmt::format("{}: cannot be read", path.string()));
  return content;
}

RunFolder::RunFolder(fs::path path) : path_(std::move(path)) {
  std::error_code error;
  if (fs::exists(path_, error) && !fs::is_directory(path_, error))
    throw InputError(fmt::format("{}: exists and is not a folder", path_.string()));
  fs::create_directories(path_, error);
  if (error) throw InputError(fmt::format("{}: cannot make this folder: {}", path_.string(), error.message()));
  if (!fs::is_empty(path_, error) || error)
    throw InputError(fmt::format("{}: the folder holds something already; name another one", path_.string()));
  if (::access(path_.c_str(), W_OK | X_OK) != 0)
    throw InputError(fmt::format("{}: cannot write in this folder: {}", path_.string(), std::strerror(errno)));
}

fs::path RunFolder::figures() const {
  fs::create_directories(path_ / "figures");
  return path_ / "figures";
}

fs::path free_folder(const fs::path& parent, const std::string& name) {
  fs::path path = parent / name;
  for (int i = 2; fs::exists(path); ++i) path = parent / fmt::format("{}-{}", name, i);
  return path;
}

CsvFile::CsvFile(const fs::path& path, const std::string& header) : path_(path), file_(path) { row(header); }

void CsvFile::row(const std::string& cells) {
  file_ << cells << '\n' << std::flush;
  if (!file_) throw Error(fmt::format("{}: cannot be written", path_.string()));
}

}  // namespace hone
