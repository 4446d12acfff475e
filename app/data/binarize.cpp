#include "app/data/binarize.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "hone/base/error.hpp"
#include "hone/base/random.hpp"
#include "hone/base/spelling.hpp"

namespace hone {
namespace {

constexpr std::array<std::pair<Binarization, std::string_view>, 4> names = {{{Binarization::automatic, "auto"},
                                                                             {Binarization::none, "none"},
                                                                             {Binarization::threshold, "threshold"},
                                                                             {Binarization::stochastic, "stochastic"}}};

void levels_of(const DataSet& data, int datum, int first, std::span<double> levels) {
  if (const auto bytes = data.bytes(); !bytes.empty()) {
    const std::size_t begin = static_cast<std::size_t>(datum) * levels.size();
    for (std::size_t i = 0; i < levels.size(); ++i) levels[i] = bytes[begin + i] / 255.0;
    return;
  }
  const std::array<int, 1> index = {datum};
  data.expand(index, MatrixView<double>(levels.data(), static_cast<int>(levels.size()), 1));
  for (std::size_t i = 0; i < levels.size(); ++i)
    if (!(levels[i] >= 0 && levels[i] <= 1))
      throw InputError(
          fmt::format("value {} of datum {} is {}: binarization needs values in [0, 1], or whole numbers from 0 to 255 "
                      "throughout; divide the data, or choose a likelihood for numbers or counts instead",
                      i, first + datum, levels[i]));
}

// decide(datum, levels, bits) turns one datum's levels into zeros and ones; data count from `first`.
template <class Decide>
DataSet decided(const DataSet& data, int first, Decide decide) {
  if (data.binary()) return data;
  BitRows rows(data.shape().pixels());
  const auto pixels = static_cast<std::size_t>(data.shape().pixels());
  std::vector<double> levels(pixels);
  std::vector<std::uint8_t> bits(pixels);
  for (int datum = 0; datum < data.size(); ++datum) {
    levels_of(data, datum, first, levels);
    decide(first + datum, levels, bits);
    rows.append(bits);
  }
  return DataSet(std::move(rows), data.shape());
}

}  // namespace

std::string_view name_of(Binarization binarization) {
  for (const auto& [value, name] : names)
    if (value == binarization) return name;
  return "";
}

Binarization binarization_named(std::string_view name) {
  std::vector<std::string> known;
  for (const auto& [value, text] : names) {
    if (text == name) return value;
    known.emplace_back(text);
  }
  throw InputError(
      fmt::format("binarization '{}': expected one of {}{}", name, join(known), did_you_mean(name, known)));
}

DataSet binarize_threshold(const DataSet& data, int first) {
  return decided(data, first, [](int, std::span<const double> levels, std::span<std::uint8_t> bits) {
    for (std::size_t i = 0; i < levels.size(); ++i) bits[i] = levels[i] > 0.5;
  });
}

DataSet binarize_stochastic(const DataSet& data, StochasticBits stochastic) {
  const PhiloxSource random(stochastic.seed);
  std::vector<double> uniforms(static_cast<std::size_t>(data.shape().pixels()));
  return decided(data, stochastic.first, [&](int datum, std::span<const double> levels, std::span<std::uint8_t> bits) {
    random.uniforms({Purpose::binarize, stochastic.part, static_cast<std::uint32_t>(datum)}, uniforms);
    for (std::size_t i = 0; i < levels.size(); ++i) bits[i] = uniforms[i] < levels[i];
  });
}

DataSet binarized(DataSet data, Binarization binarization, StochasticBits bits) {
  switch (binarization) {
    case Binarization::threshold:
      return binarize_threshold(data, bits.first);
    case Binarization::stochastic:
      return binarize_stochastic(data, bits);
    case Binarization::automatic:
    case Binarization::none:
      break;
  }
  return data;
}

}  // namespace hone
