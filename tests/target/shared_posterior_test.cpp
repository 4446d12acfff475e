// Ranks share the evaluations of a posterior. Here ranks are threads; tests/mpi has processes.

#include "hone/target/shared_posterior.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>

#include "hone/base/random.hpp"
#include "tests/support/plain_posterior.hpp"
#include "tests/support/thread_ranks.hpp"

namespace hone::test {
namespace {

constexpr int d = 3;

// A curved density with a wall, which counts what it is asked for.
class Curved final : public PlainPosterior {
 public:
  Curved() : PlainPosterior({"a", "b", "c"}) {}
  mutable std::atomic<int> points = 0;

 protected:
  void compute(MatrixView<const double> z, Want want, std::span<double> value,
               MatrixView<double> gradient) const override {
    points += z.cols();
    for (int c = 0; c < z.cols(); ++c) {
      if (wants_value(want))
        value[c] = z(0, c) > 1 ? std::log(-1.0) : -std::cosh(z(0, c)) - z(1, c) * z(1, c) * z(2, c);
      if (!wants_gradient(want)) continue;
      gradient(0, c) = -std::sinh(z(0, c));
      gradient(1, c) = -2 * z(1, c) * z(2, c);
      gradient(2, c) = -z(1, c) * z(1, c);
    }
  }
};

struct Found {
  std::vector<double> value;
  Matrix<double> gradient;
};

Found evaluated(const Target& target, int columns, Want want) {
  Matrix<double> z(d, columns);
  PhiloxSource(3).normals({Purpose::draw}, z.view().flat());
  Found found{std::vector<double>(columns, 7), Matrix<double>(d, columns)};
  target.evaluate(z, want, found.value, found.gradient);
  return found;
}

TEST(SharedPosterior, HasTheBitsOfOneProcess) {
  for (const int size : {1, 2, 3, 5})
    for (const int threads : {1, 2}) {
      const Curved alone;
      std::vector<Curved> posterior(static_cast<std::size_t>(size));
      ThreadRanks::run(size, [&](Ranks& ranks) {
        const Curved& own = posterior[static_cast<std::size_t>(ranks.rank())];
        if (ranks.rank() > 0) return serve_evaluations(own, ranks, threads);
        const SharedPosterior shared(own, ranks, threads);
        EXPECT_EQ(shared.names(), alone.names());
        for (const int columns : {1, 2 * size - 1, 2 * size, 50, 17})
          for (const Want want : {Want::value, Want::gradient, Want::both}) {
            const Found a = evaluated(alone, columns, want), b = evaluated(shared, columns, want);
            EXPECT_EQ(a.value, b.value) << size << " ranks, " << columns << " points";
            EXPECT_TRUE(std::ranges::equal(a.gradient.view().flat(), b.gradient.view().flat()));
          }
        EXPECT_TRUE(shared.in_step());
      });
      int points = 0;
      for (const Curved& own : posterior) {
        points += own.points;
        EXPECT_GT(own.points, 0) << "a rank did nothing";
      }
      EXPECT_EQ(points, alone.points);  // every point was evaluated once
    }
}

}  // namespace
}  // namespace hone::test
