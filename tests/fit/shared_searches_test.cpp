// Ranks share the searches of a fit. Here ranks are threads; tests/mpi has processes.

#include "hone/fit/shared_searches.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>

#include "hone/base/error.hpp"
#include "hone/target/whitened.hpp"
#include "tests/support/plain_posterior.hpp"
#include "tests/support/thread_ranks.hpp"

namespace hone::test {
namespace {

constexpr int d = 4;

// Two modes along the first coordinate, scales from 1 to 1000, nothing below −30 there.
class TwoModes final : public PlainPosterior {
 public:
  TwoModes() : PlainPosterior({"a", "b", "c", "d"}) {}

 protected:
  void compute(MatrixView<const double> z, Want want, std::span<double> value,
               MatrixView<double> gradient) const override {
    for (int c = 0; c < z.cols(); ++c) {
      const double x = z(0, c), well = x * x - 4;
      double sum = x < -30 ? -INFINITY : -well * well;
      if (wants_gradient(want)) gradient(0, c) = -4 * x * well;
      for (int i = 1; i < d; ++i) {
        const double scaled = z(i, c) / std::pow(10, i);
        sum -= 0.5 * scaled * scaled;
        if (wants_gradient(want)) gradient(i, c) = -scaled / std::pow(10, i);
      }
      if (wants_value(want)) value[c] = sum;
    }
  }
};

void expect_same(const Whitening& a, const Whitening& b) {
  EXPECT_EQ(a.log_det(), b.log_det());
  EXPECT_TRUE(std::ranges::equal(a.mean(), b.mean()));
  EXPECT_TRUE(std::ranges::equal(a.factor().view().flat(), b.factor().view().flat()));
}

void expect_same(const std::vector<LocalNormal>& a, const std::vector<LocalNormal>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t k = 0; k < a.size(); ++k) {
    expect_same(a[k].whitening, b[k].whitening);
    EXPECT_EQ(a[k].elbo, b[k].elbo);
    EXPECT_EQ(a[k].start, b[k].start);
    EXPECT_EQ(a[k].end, b[k].end);
    EXPECT_EQ(a[k].value, b[k].value);
    EXPECT_EQ(a[k].converged, b[k].converged);
  }
}

// Rank 0 asks `ask`; the others serve.
void on_ranks(int size, const std::function<void(const SharedPosterior&)>& ask) {
  ThreadRanks::run(size, [&](Ranks& ranks) {
    const TwoModes posterior;
    if (ranks.rank() > 0) return serve_evaluations(posterior, ranks, 2, search_for_rank_0);
    const SharedPosterior shared(posterior, ranks, 2);
    ask(shared);
    EXPECT_TRUE(shared.in_step());
  });
}

TEST(SharedSearches, HaveTheBitsOfOneProcess) {
  constexpr std::uint64_t seed = 5;
  const TwoModes posterior;
  const Whitening about = Whitening::diagonal({1, 2, 3, 4}, {2, 10, 100, 1000});
  for (const Shape shape : {Shape::dense, Shape::diagonal, Shape::low_rank})
    for (const Whitening* wide : {static_cast<const Whitening*>(nullptr), &about}) {
      const StartConfig config{.starts = 7, .first = 3, .shape = shape, .about = wide};
      Team team(1);
      const CountedTarget counted(posterior);
      const auto alone = find_local_normals(counted, config, PhiloxSource(seed), team);
      for (const int size : {2, 3, 8})
        on_ranks(size, [&](const SharedPosterior& shared) {
          const CountedTarget target(shared);
          expect_same(alone, find_local_normals(target, config, seed, shared));
          EXPECT_EQ(target.count(), counted.count());
        });
    }
}

TEST(SharedSearches, AreFollowedByEvaluations) {
  on_ranks(3, [](const SharedPosterior& shared) {
    find_local_normals(shared, {.starts = 4}, 1, shared);
    Matrix<double> z(d, 20), gradient(d, 20), expected(d, 20);
    PhiloxSource(2).normals({Purpose::draw}, z.view().flat());
    std::vector<double> value(20), expected_value(20);
    shared.evaluate(z, Want::both, value, gradient);
    TwoModes().evaluate(z, Want::both, expected_value, expected);
    EXPECT_EQ(value, expected_value);
    EXPECT_TRUE(std::ranges::equal(gradient.view().flat(), expected.view().flat()));
  });
}

TEST(SharedSearches, APointOutsideTheSupportIsAnErrorOnRankZero) {
  Matrix<double> init(d, 4);
  init(0, 3) = -31;  // the last rank's
  on_ranks(4, [&](const SharedPosterior& shared) {
    try {
      find_local_normals(shared, {.starts = 4, .init = init}, 1, shared);
      ADD_FAILURE() << "a search began where there is no density";
    } catch (const InputError& error) {
      EXPECT_STREQ(error.what(), "init: the log density is not finite at point 4");
    }
  });
}

// Ctrl-C on rank 0: the others finish their searches, and the ranks stay in step.
TEST(SharedSearches, AStopOnRankZeroIsNoLostJob) {
  on_ranks(3, [](const SharedPosterior& shared) {
    const std::atomic<bool> stop = true;
    CountedTarget target(shared, &stop);
    target.heed(true);
    EXPECT_THROW(find_local_normals(target, {.starts = 6}, 1, shared), Stopped);
    EXPECT_TRUE(shared.in_step());
    EXPECT_EQ(find_local_normals(shared, {.starts = 6}, 1, shared).size(), 6u);
  });
}

// Whatever `own` throws, evaluations afterwards are no longer this rank's alone.
TEST(SharedSearches, AnErrorWithinEndsTheWorkAlone) {
  const TwoModes posterior;
  ThreadRanks::run(1, [&](Ranks& ranks) {
    const SharedPosterior shared(posterior, ranks, 1);
    EXPECT_THROW(shared.together({}, [](Ranks&, Team&) { throw Error("own"); }), Error);
    EXPECT_FALSE(shared.in_step());
    Matrix<double> z(d, 2);
    std::vector<double> value(2);
    shared.evaluate(z, Want::value, value, {});  // shared again, with the only rank
    EXPECT_TRUE(shared.in_step());
  });
}

}  // namespace
}  // namespace hone::test
