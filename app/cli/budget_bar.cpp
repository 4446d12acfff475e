#include "app/cli/budget_bar.hpp"

#include <algorithm>
#include <cmath>

namespace hone {

BudgetBar::BudgetBar(const Posterior& posterior, const Budget& budget, const std::string& label, bool quiet)
    : timed_(budget.gradients == 0),
      total_(std::max<std::int64_t>(1, timed_ ? std::llround(std::ceil(budget.seconds)) : budget.gradients)),
      progress_(stderr, Progress::style_for(stderr, quiet), label, timed_ ? "seconds" : "gradients", total_,
                ProgressEnd::at_most),
      watched_(posterior, [this](std::int64_t gradients) { tick(gradients); }) {}

void BudgetBar::doing(const std::string& text, std::int64_t gradients) {
  doing_ = text;
  tick(gradients);
}

void BudgetBar::finish(std::int64_t gradients) {
  progress_.finish(timed_ ? std::llround(std::ceil(watch_.seconds())) : gradients);
}

void BudgetBar::tick(std::int64_t gradients) {
  if (std::this_thread::get_id() != own_) return;
  const std::int64_t done = timed_ ? static_cast<std::int64_t>(watch_.seconds()) : gradients;
  progress_.update(std::min(done, total_ - 1), doing_);
}

}  // namespace hone
