#include "hone/target/stan_cache.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "hone/base/error.hpp"
#include "hone/base/file.hpp"
#include "hone/base/format.hpp"
#include "hone/base/sha256.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;

// A lock on a name: while one process makes the file, the others wait.
class MakingLock {
 public:
  MakingLock(const fs::path& path, const std::function<bool()>& stop)
      : descriptor_(::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644)) {
    if (descriptor_ < 0) throw Error(detail::format("{}: cannot be opened", path.string()));
    int status = 0;
    while ((status = ::flock(descriptor_, LOCK_EX | LOCK_NB)) != 0 && (errno == EINTR || errno == EWOULDBLOCK)) {
      if (stop && stop()) {
        ::close(descriptor_);
        throw Stopped();
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
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

}  // namespace

std::string key_of(const std::vector<std::string>& texts) {
  Sha256 sum;
  for (const std::string& text : texts) {
    const std::string piece = detail::format("{}:{}", text.size(), text);
    sum.update({reinterpret_cast<const std::uint8_t*>(piece.data()), piece.size()});
  }
  return sum.hex().substr(0, 24);
}

fs::path cache_of(const StanOptions& options) {
  const fs::path cache = !options.cache.empty()   ? options.cache
                         : cache_folder().empty() ? fs::path()
                                                  : cache_folder() / "stan";
  if (cache.empty()) throw InputError("there is no folder for compiled models: set XDG_CACHE_HOME or HOME");
  std::error_code error;
  fs::create_directories(cache, error);
  if (!fs::is_directory(cache)) throw InputError(detail::format("{}: this folder cannot be made", cache.string()));
  return fs::canonical(cache);  // clang's compiled headers know their path, so it must be the same by every way there
}

void make_once(const fs::path& made, const StanOptions& options, const std::function<fs::path(const fs::path&)>& make) {
  if (fs::exists(made)) return;
  const MakingLock lock(fs::path(made) += ".lock", options.stop);
  if (fs::exists(made)) return;
  if (lock.held()) WorkFolder::remove_left(made);
  const WorkFolder work(made);
  const fs::path finished = make(work.path());
  if (fs::is_directory(finished)) return fs::rename(finished, made);
  const fs::path aside = fs::path(made) += detail::format(".{}.partial", ::getpid());
  fs::rename(finished, aside);
  place_file(aside, made);
}

}  // namespace hone
