#include "app/data/synthetic.hpp"

#include <array>
#include <cmath>
#include <numbers>
#include <vector>

#include "hone/base/random.hpp"

namespace hone {
namespace {

constexpr ImageShape shape{28, 28};
constexpr double flipped = 0.02;

struct Blob {
  bool bar;
  double row, col;           // its centre
  double length, thickness;  // half of each
  double sine, cosine;       // of its slant

  bool covers(int i, int j) const {
    const double along = (i - row) * sine + (j - col) * cosine;
    const double across = (i - row) * cosine - (j - col) * sine;
    if (bar) return std::abs(along) <= length && std::abs(across) <= thickness;
    return std::pow(along / length, 2) + std::pow(across / thickness, 2) <= 1;
  }
};

Blob blob_of(const PhiloxSource& random, std::uint32_t datum) {
  std::array<double, 6> u;
  random.uniforms({Purpose::synthesize, 0, datum}, u);
  const bool bar = u[0] < 0.5;
  const double slant = std::numbers::pi * u[5];
  return {.bar = bar,
          .row = 8 + 11 * u[1],
          .col = 8 + 11 * u[2],
          .length = 6 + 4 * u[3],
          .thickness = bar ? 1 + u[4] : 3 + 3 * u[4],
          .sine = std::sin(slant),
          .cosine = std::cos(slant)};
}

}  // namespace

DataSet synthetic_data(std::uint64_t seed, int begin, int end) {
  const PhiloxSource random(seed);
  BitRows rows(shape.pixels());
  std::vector<double> u(static_cast<std::size_t>(shape.pixels()));
  std::vector<std::uint8_t> bits(u.size());
  for (int datum = begin; datum < end; ++datum) {
    const Blob blob = blob_of(random, static_cast<std::uint32_t>(datum));
    random.uniforms({Purpose::synthesize, 1, static_cast<std::uint32_t>(datum)}, u);
    std::size_t pixel = 0;
    for (int i = 0; i < shape.rows; ++i)
      for (int j = 0; j < shape.cols; ++j, ++pixel) bits[pixel] = blob.covers(i, j) != (u[pixel] < flipped);
    rows.append(bits);
  }
  return DataSet(std::move(rows), shape);
}

}  // namespace hone
