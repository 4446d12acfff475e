#pragma once

#include <filesystem>
#include <fstream>
#include <string>

namespace hone {

// Writes a file aside and renames it into place, so that a reader sees the old file or the new one, never a part.
// Throws Error, naming the file, where the disk refuses.
void write_file(const std::filesystem::path& path, const std::string& content);

// The whole of a file; throws InputError, naming it, where it cannot be read.
std::string read_file(const std::filesystem::path& path);

// A folder with everything that one fit read and wrote.
class RunFolder {
 public:
  // Makes the folder. One that holds something already, or that cannot be made or written, is an InputError.
  explicit RunFolder(std::filesystem::path path);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path figures() const;  // made on first use

  void write(const std::string& name, const std::string& content) const { write_file(path_ / name, content); }

 private:
  std::filesystem::path path_;
};

// parent/name, or parent/name-2, parent/name-3 … : the first that does not exist.
std::filesystem::path free_folder(const std::filesystem::path& parent, const std::string& name);

// A CSV file that is flushed row by row.
class CsvFile {
 public:
  CsvFile(const std::filesystem::path& path, const std::string& header);
  void row(const std::string& cells);

 private:
  std::filesystem::path path_;
  std::ofstream file_;
};

}  // namespace hone
