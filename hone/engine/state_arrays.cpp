#include "hone/engine/state_arrays.hpp"

#include <algorithm>

namespace hone {
namespace {

const NamedArray& find(const TrainState& state, const std::string& name) {
  const auto found = std::ranges::find(state.arrays, name, &NamedArray::name);
  if (found == state.arrays.end()) throw InputError("the checkpoint has no array '" + name + "'");
  return *found;
}

template <class T>
void take(const TrainState& state, const std::string& name, std::span<T> out) {
  const auto* values = std::get_if<std::vector<T>>(&find(state, name).values);
  if (!values || values->size() != out.size())
    throw InputError("the checkpoint's array '" + name + "' has another size or type than the model's");
  std::ranges::copy(*values, out.begin());
}

// use(name, part) for each array that belongs to a tensor
template <class Real, class Do>
void for_arrays(const Tensor& tensor, const TrainedParameters<Real>& parameters, Do use) {
  use(tensor.name, parameters.values.subspan(tensor.offset, tensor.size()));
  if (!parameters.second.empty())
    use("optimizer.second." + tensor.name, parameters.second.subspan(tensor.offset, tensor.size()));
  if (!parameters.first.empty())
    use("optimizer.first." + tensor.name, parameters.first.subspan(tensor.offset, tensor.size()));
}

}  // namespace

template <class Real>
void add_parameters(TrainState& state, const TrainedParameters<Real>& parameters) {
  for (const Tensor& tensor : parameters.tensors)
    for_arrays(tensor, parameters, [&](const std::string& name, std::span<Real> part) {
      state.arrays.push_back({name, {tensor.rows, tensor.cols}, std::vector<Real>(part.begin(), part.end())});
    });
}

template <class Real>
void take_parameters(const TrainState& state, const TrainedParameters<Real>& parameters) {
  for (const Tensor& tensor : parameters.tensors)
    for_arrays(tensor, parameters, [&](const std::string& name, std::span<Real> part) { take(state, name, part); });
}

std::string baseline_name(Term term) { return term == Term::first ? "baseline.first" : "baseline.second"; }

void add_array(TrainState& state, const std::string& name, std::span<const double> values) {
  state.arrays.push_back(
      {name, {static_cast<std::int64_t>(values.size())}, std::vector<double>(values.begin(), values.end())});
}

void take_array(const TrainState& state, const std::string& name, std::span<double> values) {
  take(state, name, values);
}

void take_array(const TrainState& state, const std::string& name, std::vector<double>& values) {
  const auto* found = std::get_if<std::vector<double>>(&find(state, name).values);
  if (!found) throw InputError("the checkpoint's array '" + name + "' has another type than expected");
  values = *found;
}

Error not_finite(const std::string& what, std::uint32_t iteration) {
  return Error(what + " is no longer finite after iteration " + std::to_string(iteration) +
               "; smaller learning rates may help (rate_mean, rate_scale, rate_model)");
}

template void add_parameters(TrainState&, const TrainedParameters<float>&);
template void add_parameters(TrainState&, const TrainedParameters<double>&);
template void take_parameters(const TrainState&, const TrainedParameters<float>&);
template void take_parameters(const TrainState&, const TrainedParameters<double>&);

}  // namespace hone
