#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "hone/latent/data_set.hpp"

namespace hone {

// How grey levels in [0, 1] become bits. `automatic` is what is usual for the data set at hand; see load.hpp.
enum class Binarization { automatic, none, threshold, stochastic };

std::string_view name_of(Binarization binarization);

// "auto", "none", "threshold" or "stochastic"; throws InputError for anything else.
Binarization binarization_named(std::string_view name);

struct StochasticBits {
  std::uint64_t seed = 1;
  std::uint32_t part = 0;  // data that share a seed but not their numbers: 0 training file, 1 test file
};

// For both: the level of a byte is byte/255, that of another number the number itself; throws InputError where it is
// outside [0, 1]. Data that are bits already stay as they are.

// A pixel is 1 where its level is over one half.
DataSet binarize_threshold(const DataSet& data);

// A pixel is 1 with its level as the probability, decided by a number that is a function of (seed, part, datum, pixel)
// alone. So the bits are fixed once and for all by the seed, and those of a datum do not depend on the other data.
DataSet binarize_stochastic(const DataSet& data, StochasticBits bits);

}  // namespace hone
