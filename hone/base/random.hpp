#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace hone {

// What a random number is used for: numbers of different purposes never share a counter.
enum class Purpose : std::uint8_t { start, draw, momentum, accept, leapfrog, binarize, synthesize, shuffle, proposal };

// Names a sequence of random numbers. A number is a function of (seed, stream, position in the sequence) alone,
// so results depend neither on the number of threads nor on what was drawn before.
struct Stream {
  Purpose purpose;
  std::uint32_t iteration = 0;  // training counts from 1; below assessment_iteration
  std::uint32_t datum = 0;      // which chain or datum
  std::uint32_t step = 0;       // which step of a refinement; below 2^24
};

// Iterations from here on belong to estimates that are made with fresh numbers after training.
inline constexpr std::uint32_t assessment_iteration = 0x8000'0000u;

// A replaceable source of random numbers. Const and safe to call from several threads.
class RandomSource {
 public:
  virtual ~RandomSource() = default;
  virtual void normals(const Stream& stream, std::span<double> out) const = 0;
  virtual void uniforms(const Stream& stream, std::span<double> out) const = 0;  // inside (0, 1)
};

// Philox4x32-10 (Salmon et al. 2011): four random words from a 128-bit counter and a 64-bit key.
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::uint64_t key);

class PhiloxSource final : public RandomSource {
 public:
  explicit PhiloxSource(std::uint64_t seed) : seed_(seed) {}
  void normals(const Stream& stream, std::span<double> out) const override;
  void uniforms(const Stream& stream, std::span<double> out) const override;

 private:
  std::uint64_t seed_;
};

}  // namespace hone
