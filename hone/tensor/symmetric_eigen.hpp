#pragma once

#include <vector>

#include "hone/tensor/matrix.hpp"

namespace hone {

struct SymmetricEigen {
  std::vector<double> value;  // descending
  Matrix<double> vector;      // one a column, of length one
};

// Of a symmetric matrix, by Jacobi's rotations: for some hundreds of rows.
SymmetricEigen symmetric_eigen(Matrix<double> matrix);

}  // namespace hone
