#pragma once

#include <span>
#include <vector>

#include "hone/tensor/matrix.hpp"

namespace hone {

// A lower triangular matrix packed row after row: element (i, j), j ≤ i, is at i (i + 1) / 2 + j.
inline constexpr std::size_t packed(std::size_t i, std::size_t j) { return i * (i + 1) / 2 + j; }
inline constexpr std::size_t packed_size(std::size_t dimension) { return packed(dimension, 0); }

// Input and output may be the same span.
void multiply_lower(std::span<const double> lower, std::span<const double> x, std::span<double> y);          // y = L x
void solve_lower(std::span<const double> lower, std::span<const double> b, std::span<double> x);             // L x = b
void solve_lower_transposed(std::span<const double> lower, std::span<const double> b, std::span<double> x);  // Lᵀ x = b

// R⁻¹ S for packed lower triangular R and S
std::vector<double> divide_lower(std::span<const double> r, std::span<const double> s);

enum class Triangle { lower, upper };

// A triangular matrix arranged for products with many vectors: panels of eight rows, each read once per four vectors.
class TriangularPanels {
 public:
  static constexpr std::size_t rows = 8;
  struct Panel {
    std::size_t values;      // where its values begin
    std::size_t row;         // its first row
    std::size_t begin, end;  // its columns
  };

  TriangularPanels() = default;
  TriangularPanels(Triangle triangle, MatrixView<const double> matrix);  // (D, D), zero in the other triangle

  // y = M x for x (D, n), which must not be y. The bits of a column do not depend on other columns.
  void multiply(MatrixView<const double> x, MatrixView<double> y) const;

 private:
  std::size_t dimension_ = 0;
  std::vector<Panel> panels_;
  std::vector<double> values_;  // panel after panel, column after column, a column's rows next to each other
};

// The packed Cholesky factor of a symmetric matrix. Throws InputError if the matrix is not positive definite.
std::vector<double> cholesky(MatrixView<const double> matrix);

}  // namespace hone
