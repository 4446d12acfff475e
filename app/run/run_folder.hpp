#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "hone/base/file.hpp"

namespace hone {

enum class Reuse { nothing, run };

// Throws InputError if a folder could not be created or written to, which it tries; leaves nothing behind. For a check
// before long work.
void check_can_make_folder(const std::filesystem::path& path);

// A folder with everything that one run read and wrote.
class RunFolder {
 public:
  // Creates the folder. InputError if it is not empty (unless it holds a run and may be reused), or if it cannot be
  // created or written to.
  explicit RunFolder(std::filesystem::path path, Reuse reuse = Reuse::nothing);

  // Throws if the constructor would, but creates nothing: for work that writes only at its end.
  static void check(const std::filesystem::path& path, Reuse reuse = Reuse::nothing);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path figures() const;  // created on first use

  void clear() const;              // removes all that is in it, as far as possible
  void remove_unfinished() const;  // files that a killed process had not finished writing
  void write(const std::string& name, const std::string& content) const { write_file(path_ / name, content); }

 private:
  std::filesystem::path path_;
};

// While it lives, no other process can train in the same folder. InputError if one already does.
class FolderLock {
 public:
  explicit FolderLock(const std::filesystem::path& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int descriptor_;
};

// parent/name, or parent/name-2, parent/name-3 … : the first that does not exist.
std::filesystem::path free_folder(const std::filesystem::path& parent, const std::string& name);

// The run folders of hone train --seeds in a folder, seed-N, by N; none if the folder is a run itself.
std::vector<std::filesystem::path> seed_folders(const std::filesystem::path& folder);

// Throws InputError if a folder is that of a run of another command: "train", "fit" or "toy" is the expected one. The
// message says what to do with it.
void check_is_of(const std::string& command, const std::filesystem::path& folder);

// Throws InputError that says what a folder is instead, unless it looks like the folder of one training run.
void check_is_training(const std::filesystem::path& folder);

// A CSV file that is flushed row by row.
class CsvFile {
 public:
  CsvFile(const std::filesystem::path& path, const std::string& header);

  // Continues an existing file, if any. Its rows begin with an iteration; rows after `kept` are removed.
  CsvFile(const std::filesystem::path& path, const std::string& header, std::uint32_t kept);
  const std::string& last_kept() const { return last_kept_; }  // the last row kept; empty if there is none

  void row(const std::string& cells);
  void sync();  // puts the rows so far safely on disk

 private:
  std::filesystem::path path_;
  std::string last_kept_;
  std::ofstream file_;
};

}  // namespace hone
