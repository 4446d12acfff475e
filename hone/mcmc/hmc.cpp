#include "hone/mcmc/hmc.hpp"

#include <algorithm>
#include <numeric>

#include "hone/base/error.hpp"
#include "hone/base/planted.hpp"
#include "hone/base/scalar.hpp"
#include "hone/mcmc/step_size.hpp"
#include "hone/tensor/vectors.hpp"

namespace hone {
namespace {

double kinetic_energy(std::span<const double> momentum) { return 0.5 * dot(momentum, momentum); }

}  // namespace

Hmc::Hmc(const HmcConfig& config) : config_(config) {
  if (config.leapfrog < 1) throw InputError("the number of leapfrog steps must be at least 1");
  if (config.jitter < 0 || config.jitter >= config.leapfrog)
    throw InputError("the jitter of the leapfrog steps must be at least 0 and below their number");
}

// A block of chains at a time, so that what their trajectories touch again and again stays near the processor.
void Hmc::step(const Target& target, const Move& move, const ChainsView& chains) {
  constexpr int near = 8192, least = 64;  // numbers in a block of positions; chains
  const int block = std::max({least, near / chains.z.rows(), target.good_batch()});
  for (int begin = 0; begin < chains.count(); begin += block)
    step_block(target, move, chains.range(begin, std::min(chains.count(), begin + block)));
}

void Hmc::step_block(const Target& target, const Move& move, const ChainsView& chains) {
  const int count = chains.count();
  reserve(chains.z.rows(), count);
  order_by_length(move, chains);
  choose_step_sizes(move, chains);
  start(move, chains);
  integrate(target, count);
  for (int i = 0; i < count; ++i) {
    const int chain = order_[i];
    const double log_ratio = value_[i] - chains.value[chain] + energy_[i] - kinetic_energy(momentum_.column(i));
    metropolis({.log_ratio = log_ratio, .value = value_[i], .z = position_.column(i), .gradient = gradient_.column(i)},
               move, chains, chain);
  }
}

void Hmc::reserve(int dimension, int count) {
  if (position_.rows() == dimension && position_.cols() >= count) return;
  position_ = momentum_ = gradient_ = Matrix<double>(dimension, count);
  order_.resize(count);
  datum_.resize(count);
  length_.resize(count);
  step_size_.resize(count);
  value_.resize(count);
  energy_.resize(count);
}

void Hmc::order_by_length(const Move& move, const ChainsView& chains) {
  const int count = chains.count();
  std::iota(order_.begin(), order_.begin() + count, 0);
  std::fill_n(length_.begin(), count, config_.leapfrog);
  if (config_.jitter == 0) return;
  for (int chain = 0; chain < count; ++chain) {
    double uniform = 0;
    move.random.uniforms({Purpose::leapfrog, move.iteration, chains.datum(chain), move.step}, {&uniform, 1});
    length_[chain] = jittered(config_.leapfrog, config_.jitter, uniform);
  }
  std::sort(order_.begin(), order_.begin() + count,
            [this](int a, int b) { return length_[a] != length_[b] ? length_[a] > length_[b] : a < b; });
  std::sort(length_.begin(), length_.begin() + count, std::greater<>());
}

void Hmc::choose_step_sizes(const Move& move, const ChainsView& chains) {
  std::fill_n(step_size_.begin(), chains.count(), move.step_size);
  if (config_.step_sizes == StepSizes::fixed) return;
  constexpr int halvings = 10;
  constexpr auto total = [] {
    double sum = 0;
    for (int j = 0; j <= halvings; ++j) sum += 1.0 / ((j + 1) * (j + 1));
    return sum;
  }();
  for (int i = 0; i < chains.count(); ++i) {
    double uniform[2];  // the first one chose the length
    move.random.uniforms({Purpose::leapfrog, move.iteration, chains.datum(order_[i]), move.step}, uniform);
    double left = uniform[1] * total;
    for (int j = 0; j < halvings && (left -= 1.0 / ((j + 1) * (j + 1))) > 0; ++j) step_size_[i] *= 0.5;
  }
}

void Hmc::start(const Move& move, const ChainsView& chains) {
  for (int i = 0; i < chains.count(); ++i) {
    const int chain = order_[i];
    datum_[i] = chains.datum(chain);
    if (move.step == 0 || !planted(Fault::stale_momentum))
      move.random.normals({Purpose::momentum, move.iteration, datum_[i], move.step}, momentum_.column(i));
    energy_[i] = kinetic_energy(momentum_.column(i));
    copy(chains.z.column(chain), position_.column(i));
    copy(chains.gradient.column(chain), gradient_.column(i));
    add_scaled(0.5 * step_size_[i], gradient_.column(i), momentum_.column(i));
  }
}

void Hmc::integrate(const Target& target, int count) {
  const MatrixView<double> position = position_, gradient = gradient_, momentum = momentum_;
  // to += part · ε · from for the trajectories [begin, end)
  const auto add_steps = [&](double part, MatrixView<const double> from, MatrixView<double> to, int begin, int end) {
    if (config_.step_sizes == StepSizes::fixed)
      add_scaled(part * step_size_[0], from.columns(begin, end).flat(), to.columns(begin, end).flat());
    else
      for (int i = begin; i < end; ++i) add_scaled(part * step_size_[i], from.column(i), to.column(i));
  };
  const std::span<double> value(value_);
  const std::span<const std::uint32_t> datum(datum_);
  for (int under_way = count, l = 1; under_way > 0; ++l) {
    int going_on = under_way;  // trajectories [going_on, under_way) make their last step now
    while (going_on > 0 && length_[going_on - 1] == l) --going_on;
    add_steps(1, momentum, position, 0, under_way);
    if (going_on > 0)
      target.evaluate(position.columns(0, going_on), Want::gradient, {}, gradient.columns(0, going_on),
                      datum.first(going_on));
    if (going_on < under_way)
      target.evaluate(position.columns(going_on, under_way), Want::both, value.subspan(going_on, under_way - going_on),
                      gradient.columns(going_on, under_way), datum.subspan(going_on, under_way - going_on));
    add_steps(1, gradient, momentum, 0, going_on);
    add_steps(planted(Fault::missing_half_kick) ? 0 : 0.5, gradient, momentum, going_on, under_way);
    under_way = going_on;
  }
}

}  // namespace hone
