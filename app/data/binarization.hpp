#pragma once

#include <string_view>

namespace hone {

// How grey levels in [0, 1] become bits. `automatic` is the usual way for the data set; see load.hpp.
enum class Binarization { automatic, none, threshold, stochastic };

std::string_view name_of(Binarization binarization);

// "auto", "none", "threshold" or "stochastic"; throws InputError for anything else.
Binarization binarization_named(std::string_view name);

}  // namespace hone
