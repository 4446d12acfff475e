#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

namespace hone {

// Scalars in the format of TensorBoard's event files: records of TensorFlow (length and content, each with a checksum)
// whose content is a protocol buffer "Event". One file per start of a run, as TensorBoard expects.
class EventFile {
 public:
  // Creates the folder and a new file in it. A run that continues from an iteration tells TensorBoard to forget what
  // older files in the folder say about later ones. Throws InputError if the file cannot be made.
  EventFile(const std::filesystem::path& folder, std::uint32_t continues_from);

  void scalar(const std::string& tag, std::uint32_t iteration, double value);  // on its way to the disk; throws Error

 private:
  void record(const std::string& event);

  std::filesystem::path path_;
  std::ofstream file_;
};

// CRC-32C, the checksum of these records.
std::uint32_t crc32c(std::string_view bytes);

}  // namespace hone
