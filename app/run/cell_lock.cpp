#include "app/run/cell_lock.hpp"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <ctime>
#include <mutex>
#include <sstream>
#include <thread>

#include "hone/base/error.hpp"
#include "hone/base/file.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;

// Start of a process in clock ticks since boot, field 22 of its stat; 0 if there is no such process. Process
// numbers are used again; the start is not.
std::uint64_t start_of(long process) {
  std::error_code error;
  const fs::path file = fmt::format("/proc/{}/stat", process);
  if (!fs::exists(file, error)) return 0;
  std::string text;
  try {
    text = read_file(file);
  } catch (const Error&) {  // it has just ended
    return 0;
  }
  std::istringstream fields(text.substr(std::min(text.size(), text.rfind(')') + 1)));
  std::string skipped;
  for (int field = 3; field < 22; ++field) fields >> skipped;
  std::uint64_t start = 0;
  fields >> start;
  return start;
}

// Where a process number is unique: the host, and the container.
std::string place_of_this() {
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  std::error_code error;
  return fmt::format("{} {}", host, fs::read_symlink("/proc/self/ns/pid", error).string());
}

constexpr char taker_mark = '~';  // begins the names of files that are not locks yet: a process is about to claim one

// The content of a lock file: host, container, process, its start, time in words.
struct Claim {
  std::string place, since;
  long process = 0;
  std::uint64_t start = 0;

  static Claim own() {
    return {.place = place_of_this(),
            .since = fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::localtime(std::time(nullptr))),
            .process = getpid(),
            .start = start_of(getpid())};
  }
  static Claim read(const std::string& text) {
    std::istringstream fields(text);
    Claim claim;
    std::string host, container;
    fields >> host >> container >> claim.process >> claim.start;
    claim.place = host + " " + container;
    std::getline(fields >> std::ws, claim.since);
    return claim;
  }
  std::string text() const { return fmt::format("{} {} {} {}\n", place, process, start, since); }
  std::string words() const { return fmt::format("host {}, process {}, since {}", host(), process, since); }
  std::string host() const { return place.substr(0, place.find(' ')); }
};

std::string read_or_nothing(const fs::path& file) {
  try {
    return read_file(file);
  } catch (const Error&) {
    return {};
  }
}

// When a file was changed, by the clock of the file system; 0 if there is none.
std::int64_t changed(const fs::path& file) {
  struct stat info {};
  return ::stat(file.c_str(), &info) == 0 ? info.st_mtime : 0;
}

// Whether a process of this host made the claim, and has ended.
bool ended_here(const Claim& claim) {
  return claim.process > 0 && claim.place == place_of_this() && start_of(claim.process) != claim.start;
}

// `now` is a file that was just written to the same folder.
bool stale(const std::string& text, const fs::path& file, const fs::path& now) {
  const Claim claim = Claim::read(text);
  if (claim.process > 0 && claim.place == place_of_this()) return start_of(claim.process) != claim.start;
  return changed(now) - changed(file) > CellLock::stale_seconds;
}

class HeldLock final : public CellLock {
 public:
  HeldLock(fs::path file, const Claim& claim)
      : file_(std::move(file)),
        text_(claim.text()),
        name_(fmt::format("{}-{}-{}", claim.host(), claim.process, claim.start)),
        renewer_([this] { renew(); }) {}
  ~HeldLock() override {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    wake_.notify_all();
    renewer_.join();
    if (!lost()) ::unlink(file_.c_str());
  }
  bool lost() const override { return read_or_nothing(file_) != text_; }
  std::string name() const override { return name_; }

 private:
  void renew() {
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, std::chrono::seconds(renew_seconds), [this] { return ended_; }))
      if (!lost()) ::utimensat(AT_FDCWD, file_.c_str(), nullptr, 0);
  }

  fs::path file_;
  std::string text_, name_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool ended_ = false;
  std::thread renewer_;
};

}  // namespace

// link() fails if the file exists, on network file systems too. A stale file is renamed first, which only one process
// can do; if another process has replaced it in between, its file is put back.
std::unique_ptr<CellLock> CellLock::take(const fs::path& file) {
  static std::atomic<int> count = 0;
  const Claim claim = Claim::own();
  const std::string text = claim.text();
  const fs::path mine = file.parent_path() / fmt::format("{}{}.{}-{}-{}", taker_mark, file.filename().string(),
                                                         claim.host(), claim.process, count++);
  write_file(mine, text);
  struct Remove {
    const fs::path& path;
    ~Remove() { ::unlink(path.c_str()); }
  } const remove{mine};
  for (int attempt = 0; attempt < 3; ++attempt) {
    if (::link(mine.c_str(), file.c_str()) == 0) return std::make_unique<HeldLock>(file, claim);
    const std::string found = read_or_nothing(file);
    if (found.empty()) continue;  // just given back
    if (!stale(found, file, mine)) return nullptr;
    const fs::path aside = mine.string() + ".stale";
    if (::rename(file.c_str(), aside.c_str()) != 0) continue;
    if (read_or_nothing(aside) != found) (void)!::link(aside.c_str(), file.c_str());
    ::unlink(aside.c_str());
  }
  return nullptr;
}

void CellLock::sweep(const fs::path& folder) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().filename().string().starts_with(taker_mark) &&
        ended_here(Claim::read(read_or_nothing(entry.path()))))
      ::unlink(entry.path().c_str());
}

std::string CellLock::holder(const fs::path& file) {
  const std::string text = read_or_nothing(file);
  return text.empty() ? "" : Claim::read(text).words();
}

}  // namespace hone
