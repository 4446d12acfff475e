#pragma once

#include <span>
#include <string>
#include <vector>

#include "hone/base/error.hpp"
#include "hone/engine/train_state.hpp"
#include "hone/latent/parameters.hpp"
#include "hone/objective/terms.hpp"

// How engines write and read the arrays of a TrainState.
namespace hone {

// Parameters and the optimizer's moments, all in the same order. RMSProp has no first moments; where there is no
// optimizer, or it is not the library's, there are none.
template <class Real>
struct TrainedParameters {
  std::span<const Tensor> tensors;
  std::span<Real> values, first, second;
};

// Taking throws InputError if an array is missing or has a different size or type.
template <class Real>
void add_parameters(TrainState& state, const TrainedParameters<Real>& parameters);
template <class Real>
void take_parameters(const TrainState& state, const TrainedParameters<Real>& parameters);

std::string baseline_name(Term term);  // the array of a term's control variates
void add_array(TrainState& state, const std::string& name, std::span<const double> values);
void take_array(const TrainState& state, const std::string& name, std::span<double> values);
void take_array(const TrainState& state, const std::string& name, std::vector<double>& values);  // of any size

// The error that ends a run whose parameters, or whose log p(x, z), are no longer finite.
Error not_finite(const std::string& what, std::uint32_t iteration);

}  // namespace hone
