#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace hone {

// A matrix of parameters (rows, cols), row by row. Weights have one row per input unit; a bias is one row.
struct Tensor {
  std::string name;
  std::size_t offset;
  int rows;
  int cols;

  std::size_t size() const { return static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols); }
};

// All parameters of a model and its q: one flat vector, divided into named tensors. A gradient has the same size and
// order.
template <class Real>
class Parameters {
 public:
  // Returns the tensor's index. Values start at 0.
  int add(std::string name, int rows, int cols) {
    tensors_.push_back({.name = std::move(name), .offset = values_.size(), .rows = rows, .cols = cols});
    values_.resize(values_.size() + tensors_.back().size());
    return static_cast<int>(tensors_.size()) - 1;
  }

  std::span<const Tensor> tensors() const { return tensors_; }
  std::span<Real> values() { return values_; }
  std::span<const Real> values() const { return values_; }
  std::size_t size() const { return values_.size(); }

  // One tensor's numbers in the parameters or in a gradient.
  std::span<Real> of(int tensor) { return of(tensor, std::span<Real>(values_)); }
  std::span<const Real> of(int tensor) const { return of(tensor, std::span<const Real>(values_)); }
  template <class T>
  std::span<T> of(int tensor, std::span<T> all) const {
    return all.subspan(tensors_[tensor].offset, tensors_[tensor].size());
  }

 private:
  std::vector<Tensor> tensors_;
  std::vector<Real> values_;
};

}  // namespace hone
