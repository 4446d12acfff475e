#pragma once

#include <cstddef>
#include <span>

namespace hone {

// As std::nth_element: puts the value of rank k in its place, none larger before it, none smaller after it. Fast where
// k is near an end, as for the quantiles of tails.
void select(std::span<double> values, std::size_t k);

}  // namespace hone
