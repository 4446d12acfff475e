#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "hone/base/file.hpp"

namespace hone {

enum class Reuse { nothing, run };

// Throws InputError where a folder could not be made, or not be written in; makes nothing. Long work asks beforehand.
void check_can_make_folder(const std::filesystem::path& path);

// A folder with everything that one fit read and wrote.
class RunFolder {
 public:
  // Makes the folder. One that holds something already (unless that is a run, and may be reused), or that cannot be
  // made or written, is an InputError.
  explicit RunFolder(std::filesystem::path path, Reuse reuse = Reuse::nothing);

  // Throws where the constructor would, but makes nothing: for work that has something to write only at its end.
  static void check(const std::filesystem::path& path, Reuse reuse = Reuse::nothing);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path figures() const;  // made on first use

  void remove_unfinished() const;  // what a process that was killed had not finished writing
  void write(const std::string& name, const std::string& content) const { write_file(path_ / name, content); }

 private:
  std::filesystem::path path_;
};

// Keeps other processes from training in the same folder while it lives; an InputError where one does already.
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

// A CSV file that is flushed row by row.
class CsvFile {
 public:
  CsvFile(const std::filesystem::path& path, const std::string& header);

  // Goes on with one that may be there and whose rows begin with an iteration: rows after `kept` are cut.
  CsvFile(const std::filesystem::path& path, const std::string& header, std::uint32_t kept);
  const std::string& last_kept() const { return last_kept_; }  // the last row that stayed; empty where none did

  void row(const std::string& cells);
  void sync();  // the rows so far are on the disk, whatever happens to the machine

 private:
  std::filesystem::path path_;
  std::string last_kept_;
  std::ofstream file_;
};

}  // namespace hone
