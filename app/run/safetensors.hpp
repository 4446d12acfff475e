#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace hone {

struct StoredTensor {
  std::string name;
  std::vector<std::int64_t> shape;                                                          // last index fastest
  std::variant<std::vector<float>, std::vector<double>, std::vector<std::int64_t>> values;  // F32, F64, I64
};

// Named tensors and notes in the safetensors format: the header's length (8 bytes, little endian), a JSON header, the
// numbers. Our files have the note "sha256", a checksum of everything else in the file.
struct TensorFile {
  std::vector<StoredTensor> tensors;
  std::map<std::string, std::string> notes;  // __metadata__
};

// The bytes of a file; equal content gives equal bytes. Wide numbers come first, so that all numbers are aligned.
std::vector<std::uint8_t> to_safetensors(const TensorFile& content);

// Parses the bytes of a file. Any error is an InputError that begins with `origin`. Never allocates more than the bytes
// present justify. If there is a checksum, it is verified and returned among the notes.
TensorFile from_safetensors(std::span<const std::uint8_t> bytes, const std::string& origin);

}  // namespace hone
