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
// numbers. A file of ours has the note "sha256", the checksum of everything else in it.
struct TensorFile {
  std::vector<StoredTensor> tensors;
  std::map<std::string, std::string> notes;  // __metadata__
};

// The bytes of a file; equal content gives equal bytes. Wide numbers come first, so that all are aligned.
std::vector<std::uint8_t> to_safetensors(const TensorFile& content);

// The content of a file's bytes. Whatever is wrong with them is an InputError that begins with `origin`; memory is
// asked for only as far as there are bytes. A checksum is verified where there is one, and returned among the notes.
TensorFile from_safetensors(std::span<const std::uint8_t> bytes, const std::string& origin);

}  // namespace hone
