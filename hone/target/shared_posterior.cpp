#include "hone/target/shared_posterior.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

namespace hone {
namespace {

struct Request {
  int columns;  // 0: the end; other_work: bytes follow
  Want want;
  std::size_t bytes = 0;
};
constexpr int other_work = -1;

void announce(Ranks& ranks, Request& request) {
  ranks.broadcast(std::as_writable_bytes(std::span(&request, 1)), 0, Patience::unlimited);
}

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// Every rank has z and evaluates its share; all get all results. Returns the seconds of this rank's evaluations.
double evaluate_together(const Target& target, Ranks& ranks, Team& team, MatrixView<const double> z, Want want,
                         std::span<double> value, MatrixView<double> gradient) {
  const ItemRange own = share_of(z.cols(), &ranks);
  const Clock::time_point begin = Clock::now();
  team.for_shares(own.count(), [&](int from, int to, int) {
    if (from == to) return;
    const int first = own.begin + from, last = own.begin + to;
    target.evaluate(z.columns(first, last), want,
                    wants_value(want)
                        ? value.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(last - first))
                        : std::span<double>(),
                    wants_gradient(want) ? gradient.columns(first, last) : MatrixView<double>());
  });
  const double computing = seconds_since(begin);
  // A slow rank is not lost: models may take seconds per gradient.
  if (wants_value(want))
    gather_shares(&ranks, value.first(static_cast<std::size_t>(z.cols())), z.cols(), Patience::unlimited);
  if (wants_gradient(want)) gather_shares(&ranks, gradient.flat(), z.cols(), Patience::unlimited);
  return computing;
}

}  // namespace

// A thread's columns follow each other, and all threads are about as fast.
void PaceMeter::Sums::add(const Batch& batch) {
  const auto in_turn = [&](int count) { return (count + batch.threads - 1) / batch.threads; };
  const double one = batch.computing / in_turn(batch.own);
  ++batches;
  columns += batch.columns;
  gradient += one;
  alone += one * in_turn(batch.columns);
  shared += batch.all;
  exchange += batch.all - batch.computing;
}

void PaceMeter::add(const Batch& batch, int ranks) {
  if (!tell) return;
  any_.add(batch);
  if (batch.columns >= large) large_.add(batch);
  const bool is_slow = any_.batches >= slow_batches && any_.gradient >= slow * any_.batches;
  if (!is_slow && large_.batches < large_batches) return;
  const Sums& sums = large_.batches > 0 ? large_ : any_;
  const double n = sums.batches;
  tell({.ranks = ranks,
        .columns = static_cast<int>(std::lround(sums.columns / n)),
        .gradient = sums.gradient / n,
        .alone = sums.alone / n,
        .shared = sums.shared / n,
        .exchange = sums.exchange / n});
  tell = nullptr;
}

SharedPosterior::SharedPosterior(const Posterior& posterior, Ranks& ranks, int threads)
    : posterior_(posterior), ranks_(ranks), team_(threads) {}

SharedPosterior::~SharedPosterior() {
  if (!in_step()) return;
  try {
    Request end{0, Want::both};
    announce(ranks_, end);
  } catch (const Error&) {  // the ranks are lost, and say so at their next call
  }
}

// All chains at once: they are shared out here.
int SharedPosterior::good_batch() const { return std::numeric_limits<int>::max() / 2; }

void SharedPosterior::compute(MatrixView<const double> z, Want want, std::span<double> value,
                              MatrixView<double> gradient) const {
  if (alone_ || z.cols() < 2 * ranks_.size()) {
    posterior_.evaluate(z, want, value, gradient);
    return;
  }
  in_step_ = false;
  const Clock::time_point begin = Clock::now();
  Request request{z.cols(), want};
  announce(ranks_, request);
  sent_.assign(z.flat().begin(), z.flat().end());
  ranks_.broadcast(std::as_writable_bytes(std::span(sent_)), 0, Patience::unlimited);
  const double computing = evaluate_together(posterior_, ranks_, team_, z, want, value, gradient);
  in_step_ = true;
  if (wants_gradient(want))
    meter_.add({.columns = z.cols(),
                .own = share_of(z.cols(), &ranks_).count(),
                .threads = team_.threads(),
                .computing = computing,
                .all = seconds_since(begin)},
               ranks_.size());
}

void SharedPosterior::together(Bytes job, const std::function<void(Ranks&, Team&)>& own) const {
  in_step_ = false;
  Request request{other_work, Want::both, job.bytes().size()};
  announce(ranks_, request);
  ranks_.broadcast(job.bytes(), 0, Patience::unlimited);
  struct Alone {  // also where `own` throws
    explicit Alone(bool& on) : flag(on) { flag = true; }
    ~Alone() { flag = false; }
    Alone(const Alone&) = delete;
    Alone& operator=(const Alone&) = delete;
    bool& flag;
  };
  {
    const Alone alone(alone_);
    own(ranks_, team_);
  }
  in_step_ = true;
}

void serve_evaluations(const Target& target, Ranks& ranks, int threads, const OtherWork& other) {
  Team team(threads);
  Matrix<double> z, gradient;
  std::vector<double> value;
  for (;;) {
    Request request{};
    announce(ranks, request);
    if (request.columns == 0) return;
    if (request.columns == other_work) {
      Bytes job(std::vector<std::byte>(request.bytes));
      ranks.broadcast(job.bytes(), 0, Patience::unlimited);
      other(target, ranks, team, std::move(job));
      continue;
    }
    if (z.cols() != request.columns) {
      z = Matrix<double>(target.dimension(), request.columns);
      gradient = Matrix<double>(target.dimension(), request.columns);
      value.resize(static_cast<std::size_t>(request.columns));
    }
    ranks.broadcast(std::as_writable_bytes(z.view().flat()), 0, Patience::unlimited);
    evaluate_together(target, ranks, team, z, request.want, value, gradient);
  }
}

}  // namespace hone
