#include "hone/fit/natural_values.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "hone/base/error.hpp"
#include "hone/tensor/vectors.hpp"

namespace hone {
namespace {

using Clock = std::chrono::steady_clock;
constexpr double grace = 1;  // seconds that a fit may go on after a stop

double seconds_since(Clock::time_point time) { return std::chrono::duration<double>(Clock::now() - time).count(); }

std::string_view bytes_of(std::span<const double> z) {
  return {reinterpret_cast<const char*>(z.data()), z.size_bytes()};
}

// By the first two coordinates: different points seldom share both.
struct HashOfFirst {
  std::size_t operator()(std::string_view bytes) const {
    return std::hash<std::string_view>()(bytes.substr(0, 2 * sizeof(double)));
  }
};

// Of a chain's `each` states, the numbers of `kept` ones, evenly spaced, the last among them.
std::vector<int> kept_states(int each, int kept) {
  std::vector<int> numbers;
  for (int k = 1; k <= kept; ++k) numbers.push_back(k * each / kept - 1);
  return numbers;
}

ChainStates thinned(const ChainStates& states, const std::vector<int>& numbers, std::vector<double>* with) {
  const int each = states.per_chain(), kept = static_cast<int>(numbers.size());
  ChainStates result(states.z.rows(), states.chains, kept);
  if (states.gradient.cols() > 0) result.gradient = Matrix<double>(states.z.rows(), states.chains * kept);
  std::vector<double> some;
  for (int to = 0; to < result.count(); ++to) {
    const int from = to / kept * each + numbers[static_cast<std::size_t>(to % kept)];
    const auto place = static_cast<std::size_t>(to), source = static_cast<std::size_t>(from);
    copy(states.z.column(from), result.z.column(to));
    if (states.gradient.cols() > 0) copy(states.gradient.column(from), result.gradient.column(to));
    result.log_p[place] = states.log_p[source];
    if (!states.moves.empty()) result.moves[place] = states.moves[source];
    if (with) some.push_back((*with)[source]);
  }
  if (with) *with = std::move(some);
  return result;
}

}  // namespace

void NaturalValues::constrain(std::span<const double> z, std::span<double> natural) {
  if (!patient_ && stop_ && *stop_) {
    if (!stopped_) stopped_ = Clock::now();
    if (seconds_since(*stopped_) > grace) throw Stopped();
  }
  const Clock::time_point begun = Clock::now();
  try {
    posterior_.constrain(z, natural);
  } catch (const Stopped&) {
    throw;
  } catch (const Error&) {
    std::ranges::fill(natural, std::nan(""));
  }
  seconds_ += seconds_since(begun);
  ++calls_;
}

Matrix<double> NaturalValues::of(MatrixView<const double> z) {
  Matrix<double> result(static_cast<int>(posterior_.names().size()), z.cols());
  std::unordered_map<std::string_view, std::span<const double>, HashOfFirst> known;
  known.reserve(static_cast<std::size_t>(z_.cols()) + static_cast<std::size_t>(z.cols()));
  for (int i = 0; i < z_.cols(); ++i) known.emplace(bytes_of(z_.column(i)), values_.column(i));
  for (int i = 0; i < z.cols(); ++i) {
    const auto [found, is_new] = known.emplace(bytes_of(z.column(i)), result.column(i));
    if (is_new)
      constrain(z.column(i), result.column(i));
    else
      copy(found->second, result.column(i));
  }
  return result;
}

const Matrix<double>& NaturalValues::remembered(Matrix<double> z) {
  values_ = of(z);
  z_ = std::move(z);
  return values_;
}

Matrix<double> NaturalValues::taken(Matrix<double> z) {
  Matrix<double> values = of(z);
  z_ = values_ = Matrix<double>();
  return values;
}

double NaturalValues::affordable() const {
  return calls_ > 0 ? 2 * grace / std::max(seconds_ / calls_, 1e-9) : std::numeric_limits<double>::infinity();
}

void thin_out(RefinedDraws& refined, double points) {
  const double share = points / (refined.states.count() + refined.before.count() + refined.z0.cols());
  if (share >= 1) return;
  const auto fewer = [&](ChainStates& states, std::vector<double>* with) {
    const int kept = std::max(2, static_cast<int>(states.per_chain() * share));
    if (kept < states.per_chain()) states = thinned(states, kept_states(states.per_chain(), kept), with);
  };
  fewer(refined.states, &refined.log_q);
  fewer(refined.before, nullptr);
  constexpr int least = 100;  // draws of q
  const int kept = std::max({least, refined.zt.cols(), static_cast<int>(refined.z0.cols() * share)});
  if (kept >= refined.z0.cols()) return;
  const auto size = static_cast<std::size_t>(kept);
  Matrix<double> z0(refined.z0.rows(), kept);
  copy(refined.z0.view().columns(0, kept).flat(), z0.view().flat());
  refined.z0 = std::move(z0);
  refined.component.resize(std::min(size, refined.component.size()));
  refined.log_p0.resize(size);
  refined.log_q0.resize(size);
}

}  // namespace hone
