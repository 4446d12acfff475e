#include "hone/fit/q_geometry.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "hone/family/gaussian.hpp"
#include "hone/family/mixture.hpp"

namespace hone {
namespace {

TEST(Rewhiten, LeavesTheMixtureWhatItWas) {
  FittedQ q;
  q.kind = QKind::mixture;
  q.whitening = Whitening::dense({1, -2}, std::vector<double>{2, 0.3, 0.5});
  auto family = std::make_unique<MixtureFamily>(2, 2, Covariance::full);
  PhiloxSource(5).normals({Purpose::start}, family->parameters());
  for (const std::size_t i : family->positive_parameters())
    family->parameters()[i] = 0.5 + std::abs(family->parameters()[i]);
  const std::vector<double> before(family->parameters().begin(), family->parameters().end());
  q.family = std::move(family);
  const std::vector<double> z{0.7, -1.1};
  const auto log_q = [&] {
    std::vector<double> e(2);
    double value = 0;
    q.whitening.to_e(z, e);
    q.family->log_density({e.data(), 2, 1}, Want::value, {&value, 1}, {});
    return value - q.whitening.log_det();
  };
  const double density = log_q();
  EXPECT_NEAR(rewhiten(q, before, PhiloxSource(6)).change, 0, 1e-12);
  EXPECT_NEAR(log_q(), density, 1e-12);
}

// Gaussians that differ by a shift and a scale: KL both ways in closed form.
TEST(Rewhiten, ChangeIsTheSymmetrisedKl) {
  FittedQ q;
  q.whitening = Whitening::dense({0}, std::vector<double>{2});
  auto family = std::make_unique<GaussianFamily>(1, Covariance::full);
  family->mean()[0] = 0.3;
  family->scale()[0] = 1.2;
  q.family = std::move(family);
  const std::vector<double> before{0, 1};
  const double v = 1.44, forward = 0.5 * (v + 0.09 - 1 - std::log(v)),
               back = 0.5 * (1 / v + 0.09 / v - 1 + std::log(v));
  EXPECT_NEAR(rewhiten(q, before, PhiloxSource(1)).change, forward + back, 1e-12);
  EXPECT_NEAR(q.whitening.mean()[0], 0.6, 1e-12);
  EXPECT_NEAR(std::sqrt(q.whitening.variance(0)), 2.4, 1e-12);
}

}  // namespace
}  // namespace hone
