// Ranks share the evaluations of a posterior. Here ranks are threads; tests/mpi has processes.

#include "hone/target/shared_posterior.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>

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

// A gradient takes a while.
class Sleeping final : public PlainPosterior {
 public:
  explicit Sleeping(int milliseconds) : PlainPosterior({"a", "b", "c"}), milliseconds_(milliseconds) {}

 protected:
  void compute(MatrixView<const double> z, Want, std::span<double> value, MatrixView<double> gradient) const override {
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds_ * z.cols()));
    std::ranges::fill(value, 0.0);
    std::ranges::fill(gradient.flat(), 0.0);
  }

 private:
  int milliseconds_;
};

// What rank 0 of two heard after each of some batches of gradients.
std::vector<std::size_t> heard_after(int milliseconds, int columns, int batches, std::vector<SharedPace>& heard) {
  const Sleeping posterior(milliseconds);
  std::vector<std::size_t> counts;
  ThreadRanks::run(2, [&](Ranks& ranks) {
    if (ranks.rank() > 0) return serve_evaluations(posterior, ranks, 1);
    SharedPosterior shared(posterior, ranks, 1);
    shared.on_pace([&](const SharedPace& pace) { heard.push_back(pace); });
    evaluated(shared, columns, Want::value);
    for (int i = 0; i < batches; ++i) {
      evaluated(shared, columns, Want::gradient);
      counts.push_back(heard.size());
    }
  });
  return counts;
}

TEST(SharedPosterior, SaysWhatRanksBring) {
  std::vector<SharedPace> heard;
  EXPECT_EQ(heard_after(2, 6, 5, heard), (std::vector<std::size_t>{0, 0, 1, 1, 1}));  // slow gradients: early, and once
  const SharedPace pace = heard.at(0);
  EXPECT_EQ(pace.ranks, 2);
  EXPECT_EQ(pace.columns, 6);
  EXPECT_GE(pace.gradient, 0.002);
  EXPECT_NEAR(pace.alone, 6 * pace.gradient, 1e-12);
  EXPECT_GE(pace.shared, 0.006);
  EXPECT_NEAR(pace.shared - pace.exchange, 3 * pace.gradient, 1e-12);
  EXPECT_GE(pace.exchange, 0);
}

TEST(SharedPosterior, QuickGradientsAreJudgedByLargeBatches) {
  std::vector<SharedPace> heard;
  EXPECT_EQ(heard_after(0, PaceMeter::large - 1, 2 * PaceMeter::large_batches, heard).back(), 0u);
  const std::vector<std::size_t> counts = heard_after(0, PaceMeter::large, PaceMeter::large_batches + 1, heard);
  EXPECT_EQ(counts[PaceMeter::large_batches - 2], 0u);
  EXPECT_EQ(counts.back(), 1u);
  EXPECT_EQ(heard.at(0).columns, PaceMeter::large);
}

}  // namespace
}  // namespace hone::test
