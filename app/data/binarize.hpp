#pragma once

#include <cstdint>

#include "app/data/binarization.hpp"
#include "hone/latent/data_set.hpp"

namespace hone {

struct StochasticBits {
  std::uint64_t seed = 1;
  std::uint32_t part = 0;  // same seed, other random numbers: 0 training file, 1 test file
  int first = 0;           // the place of the first datum among all of which these are a part
};

// In both, the level of a byte is byte/255, and the level of any other number is the number itself. They throw
// InputError if a level is outside [0, 1]. Data that are already bits stay as they are.

// A pixel is 1 if its level is over one half. Messages count data from `first`.
DataSet binarize_threshold(const DataSet& data, int first = 0);

// A pixel is 1 with its level as the probability. The random number is a function of (seed, part, datum, pixel) only,
// so the seed fixes the bits, and the bits of a datum do not depend on the other data.
DataSet binarize_stochastic(const DataSet& data, StochasticBits bits);

// Binarizes by threshold or at random; returns the data unchanged for `none` and `automatic`.
DataSet binarized(DataSet data, Binarization binarization, StochasticBits bits);

}  // namespace hone
