#include "hone/objective/baseline.hpp"

#include <algorithm>
#include <vector>

#include "hone/base/error.hpp"
#include "hone/base/planted.hpp"

namespace hone {
namespace {

double weighted_sum(const Draws& draws, std::span<const double> value, int begin, int end) {
  double sum = 0;
  for (int i = begin; i < end; ++i) sum += draws.weight[i] * value[i];
  return sum;
}

class NoBaseline final : public Baseline {
 public:
  void centre(const Draws&, std::span<const double> value, std::span<double> centred) override {
    std::ranges::copy(value, centred.begin());
  }
};

class GlobalBaseline final : public Baseline {
 public:
  explicit GlobalBaseline(double decay) : decay_(decay) {}

  void centre(const Draws& draws, std::span<const double> value, std::span<double> centred) override {
    if (planted(Fault::baseline_after_update)) learn(draws, value);
    for (std::size_t i = 0; i < value.size(); ++i) centred[i] = value[i] - average_;
    if (!planted(Fault::baseline_after_update)) learn(draws, value);
  }
  double value() const override { return average_; }

 private:
  void learn(const Draws& draws, std::span<const double> value) {
    // Draws that left the estimate carry no weight; an iteration without any teaches nothing.
    double weight = 0;
    for (const double w : draws.weight) weight += w;
    if (weight <= 0) return;
    average_ = decay_ * average_ + (1 - decay_) * weighted_sum(draws, value, 0, draws.count()) / weight;
  }

  double decay_;
  double average_ = 0;
};

// C_i = Σ_k w_k · (mean over the draws of component k, without draw i). Each C_i has the mean Σ_k w_k E_k, whichever
// component made draw i; the mean of simply all other draws would not.
class LeaveOneOut final : public Baseline {
 public:
  void centre(const Draws& draws, std::span<const double> value, std::span<double> centred) override {
    const int n = draws.per_component;
    const double all = weighted_sum(draws, value, 0, draws.count());
    for (int begin = 0; begin < draws.count(); begin += n) {
      const auto weight = std::span(draws.weight).subspan(begin, n);
      const auto alive = static_cast<double>(n - std::ranges::count(weight, 0.0));
      if (alive < 2) {  // too few are left inside the support: this batch goes without a baseline
        std::ranges::copy(value, centred.begin());
        return;
      }
      const double own = weighted_sum(draws, value, begin, begin + n);
      for (int i = begin; i < begin + n; ++i) {
        // own is Σ w_k/alive · value; without draw i, rescaled to an average over alive − 1 draws
        const double rest = (own - draws.weight[i] * value[i]) * alive / (alive - 1);
        centred[i] = value[i] - (all - own + rest);
      }
    }
  }
};

}  // namespace

std::unique_ptr<Baseline> make_baseline(BaselineKind kind, double decay) {
  if (!(decay >= 0 && decay <= 1)) throw InputError("the decay of a baseline must lie in [0, 1]");
  switch (kind) {
    case BaselineKind::none:
      return std::make_unique<NoBaseline>();
    case BaselineKind::global:
      return std::make_unique<GlobalBaseline>(decay);
    case BaselineKind::leave_one_out:
      return std::make_unique<LeaveOneOut>();
  }
  throw Error("unknown baseline");
}

}  // namespace hone
