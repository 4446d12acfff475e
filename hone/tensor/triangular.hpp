#pragma once

#include <span>
#include <vector>

#include "hone/tensor/matrix.hpp"

namespace hone {

// A lower triangular matrix packed row after row: element (i, j), j ≤ i, stands at i (i + 1) / 2 + j.
inline constexpr std::size_t packed(std::size_t i, std::size_t j) { return i * (i + 1) / 2 + j; }
inline constexpr std::size_t packed_size(std::size_t dimension) { return packed(dimension, 0); }

// Where input and output are of one length they may be the same span.
void multiply_lower(std::span<const double> lower, std::span<const double> x, std::span<double> y);       // y = L x
void solve_lower(std::span<const double> lower, std::span<const double> b, std::span<double> x);          // L x = b
void solve_lower_transposed(std::span<const double> lower, std::span<const double> b, std::span<double> x);  // Lᵀ x = b

// The packed Cholesky factor of a symmetric positive definite matrix; throws InputError where it is not one.
std::vector<double> cholesky(MatrixView<const double> matrix);

}  // namespace hone
