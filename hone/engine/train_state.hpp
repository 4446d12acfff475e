#pragma once

#include <span>
#include <string>

#include "hone/base/error.hpp"
#include "hone/engine/engine.hpp"
#include "hone/latent/parameters.hpp"

namespace hone {

// Parameters with the optimizer's moments, in one order; RMSProp has no first moments.
template <class Real>
struct TrainedParameters {
  std::span<const Tensor> tensors;
  std::span<Real> values, first, second;
};

// The arrays of a state, by name. Taking throws InputError where one is missing or of another size or type.
template <class Real>
void add_parameters(TrainState& state, const TrainedParameters<Real>& parameters);
template <class Real>
void take_parameters(const TrainState& state, const TrainedParameters<Real>& parameters);

std::string baseline_name(Term term);  // of a term's control variate
void add_array(TrainState& state, const std::string& name, std::span<const double> values);
void take_array(const TrainState& state, const std::string& name, std::span<double> values);

// What ends a run whose parameters, or whose log p(x, z), are no longer finite.
Error not_finite(const std::string& what, std::uint32_t iteration);

}  // namespace hone
