#pragma once

#include <vector>

#include "hone/tensor/matrix.hpp"

namespace hone {

struct SymmetricEigen {
  std::vector<double> value;  // descending
  Matrix<double> vector;      // one per column, of length 1
};

// Eigenvalues and eigenvectors of a symmetric matrix by Jacobi rotations; suitable for up to a few hundred rows.
SymmetricEigen symmetric_eigen(Matrix<double> matrix);

}  // namespace hone
