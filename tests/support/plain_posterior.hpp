#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "hone/target/posterior.hpp"

namespace hone::test {

// A posterior whose coordinates are its parameters: what is left to say is its density.
class PlainPosterior : public Posterior {
 public:
  explicit PlainPosterior(std::vector<std::string> names) : names_(std::move(names)) {}
  int dimension() const override { return static_cast<int>(names_.size()); }
  const std::vector<std::string>& names() const override { return names_; }
  const std::vector<std::string>& coordinate_names() const override { return names_; }
  std::size_t parameter_count() const override { return names_.size(); }
  void constrain(std::span<const double> z, std::span<double> natural) const override {
    std::ranges::copy(z, natural.begin());
  }

 private:
  std::vector<std::string> names_;
};

}  // namespace hone::test
