#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace hone {

// SHA-256 (FIPS 180-4) of bytes that arrive in pieces, so that a checksum needs no cryptography library.
class Sha256 {
 public:
  void update(std::span<const std::uint8_t> bytes);
  std::string hex();  // 64 digits; call once, after the last update

 private:
  void digest(const std::uint8_t* block);

  std::array<std::uint32_t, 8> state_ = {0x6a09e667u, 0xbb67ae85u, 0x3c6ef372u, 0xa54ff53au,
                                         0x510e527fu, 0x9b05688cu, 0x1f83d9abu, 0x5be0cd19u};
  std::array<std::uint8_t, 64> block_{};  // bytes that do not yet fill a block
  std::size_t pending_ = 0;
  std::uint64_t length_ = 0;
};

}  // namespace hone
