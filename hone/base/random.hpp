#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace hone {

/// What a random number is used for. Numbers for different purposes never share a counter.
enum class Purpose : std::uint8_t {
  start,       ///< starting values of parameters and searches
  draw,        ///< draws from q or from the prior
  momentum,    ///< momenta of HMC, noise of MALA and random walks
  accept,      ///< accept or reject
  leapfrog,    ///< lengths and step sizes of trajectories
  binarize,    ///< binarization of grey values
  synthesize,  ///< simulated data
  shuffle,     ///< permutations
  proposal,    ///< draws from importance-sampling proposals
};

/// Names a sequence of random numbers. A number is a function of (seed, stream, position in the sequence) alone, so
/// results depend neither on the number of threads nor on what was drawn before.
struct Stream {
  Purpose purpose;              ///< what the numbers are for
  std::uint32_t iteration = 0;  ///< training counts from 1 and stays below assessment_iteration
  std::uint32_t datum = 0;      ///< which chain or datum
  std::uint32_t step = 0;       ///< which step of a refinement; below 2^24
};

/// Iterations from here on are for estimates after training, which need numbers that training did not use.
inline constexpr std::uint32_t assessment_iteration = 0x8000'0000u;

/// A source of random numbers. Derive from it to replay recorded numbers. Safe to call from several threads.
class RandomSource {
 public:
  virtual ~RandomSource() = default;
  /// Fills `out` with the first out.size() standard normals of a stream.
  virtual void normals(const Stream& stream, std::span<double> out) const = 0;
  /// Fills `out` with the first out.size() uniforms of a stream; 0 and 1 themselves do not occur.
  virtual void uniforms(const Stream& stream, std::span<double> out) const = 0;
};

/// Philox4x32-10 (Salmon et al. 2011): four random words from a 128-bit counter and a 64-bit key.
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::uint64_t key);

/// The library's own source: counter-based random numbers by Philox.
class PhiloxSource final : public RandomSource {
 public:
  /// Different seeds give independent numbers.
  explicit PhiloxSource(std::uint64_t seed) : seed_(seed) {}
  void normals(const Stream& stream, std::span<double> out) const override;
  void uniforms(const Stream& stream, std::span<double> out) const override;

 private:
  std::uint64_t seed_;
};

}  // namespace hone
