#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hone {

// What a message on a missing value adds.
inline constexpr auto missing_hint = "; missing = \"ignore\" leaves missing values out of the likelihood";

// Reads a file or a piece of memory front to back, and inflates it if its first bytes say gzip. Offsets count inflated
// bytes. Any error is an InputError that names the file and the offset.
class ByteSource {
 public:
  // The most that is inflated: no reader trusts a compressed file beyond that.
  static constexpr std::uint64_t inflated_limit = std::uint64_t{4} << 30;

  explicit ByteSource(const std::filesystem::path& file);
  ByteSource(std::span<const std::uint8_t> memory, std::string name);  // the memory must outlive the source
  ~ByteSource();
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  std::size_t read(std::span<std::uint8_t> out);  // fewer bytes than requested only at the end
  void read_exactly(std::span<std::uint8_t> out, std::string_view what);

  // Reads `count` bytes that a header announced. Refuses a count that the file cannot hold before it allocates
  // anything; memory grows only with the bytes read.
  std::vector<std::uint8_t> read_announced(std::uint64_t count, std::string_view what);
  void check_announced(std::uint64_t count, std::string_view what) const;  // the refusal alone

  // Throws if bytes are left over; also verifies the checksum at the end of gzip data.
  void expect_end();

  std::uint64_t offset() const { return offset_; }
  const std::string& name() const { return name_; }
  [[noreturn]] void fail(std::uint64_t offset, std::string_view what) const;

 private:
  struct Input;
  struct Inflater;

  void begin();
  std::size_t read_inflated(std::span<std::uint8_t> out);
  bool next_member();
  std::uint64_t most_left() const;

  std::string name_;
  std::unique_ptr<Input> input_;
  std::unique_ptr<Inflater> inflater_;  // none: plain
  std::uint64_t offset_ = 0;
};

}  // namespace hone
