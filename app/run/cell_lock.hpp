#pragma once

#include <filesystem>
#include <memory>
#include <string>

namespace hone {

// A claim to a cell of an experiment in a folder that several processes share, perhaps on several hosts: a file with
// host, process and time. While the claim lives it renews the file's time. A claim whose process is gone (on this host)
// or which has not been renewed for `stale_seconds` (on another) counts no longer: any process may die at any moment.
class CellLock {
 public:
  static constexpr int renew_seconds = 20, stale_seconds = 200;

  // Claims the cell; null if another process has it. Throws Error if the file cannot be written.
  static std::unique_ptr<CellLock> take(const std::filesystem::path& file);
  // Who has the claim, in words; empty if nobody does.
  static std::string holder(const std::filesystem::path& file);
  // Removes the files of processes of this host that were killed while they claimed a cell of the folder.
  static void sweep(const std::filesystem::path& folder);

  virtual ~CellLock() = default;         // gives the claim back
  virtual bool lost() const = 0;         // another process took it, because this one stood still for too long
  virtual std::string name() const = 0;  // no other live claim has it: host and process
};

}  // namespace hone
