#include "app/run/networks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <numeric>

#include "app/run/run_folder.hpp"
#include "app/run/train_record.hpp"
#include "app/run/trained_model.hpp"
#include "hone/base/error.hpp"
#include "hone/base/parallel.hpp"
#include "hone/engine/engines.hpp"
#include "hone/fit/q_geometry.hpp"
#include "hone/latent/likelihoods.hpp"
#include "hone/latent/model.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;

std::vector<int> indices_of(Range range) {
  std::vector<int> indices(range.size());
  std::iota(indices.begin(), indices.end(), range.begin);
  return indices;
}

}  // namespace

TrainedNetworks::TrainedNetworks(TrainRunConfig config, Checkpoint checkpoint, int threads)
    : config_(std::move(config)), state_(std::move(checkpoint.state)), threads_(threads) {
  if (!checkpoint.data) throw InputError("the checkpoint says nothing about its data");
  data_ = std::move(*checkpoint.data);
  stand_in_ = data_.stand_in(config_.train.model.categories);
  model_ = freeze(config_.train, state_, stand_in_);
}

void TrainedNetworks::check(const DataSet& data, int first) const {
  model_->check(data, first);
  check_scale(config_.train.model.density(), data, first);
}

// work(k, range) for the blocks k of `count` data, shared among threads.
void TrainedNetworks::for_blocks(int count, const std::function<void(int, Range)>& work) const {
  Team team(threads_);
  team.for_shares((count + block - 1) / block, [&](int begin, int end, int) {
    for (int k = begin; k < end; ++k) work(k, {k * block, std::min(count, (k + 1) * block)});
  });
}

void TrainedNetworks::encode(const DataSet& data, Range range, MatrixView<double> mean, MatrixView<double> sd) const {
  for_blocks(range.size(), [&](int, Range part) {
    const std::vector<int> indices = indices_of({range.begin + part.begin, range.begin + part.end});
    model_->encode(data, indices, mean.columns(part.begin, part.end), sd.columns(part.begin, part.end));
  });
}

double TrainedNetworks::refine(const DataSet& data, Range range, const Refinement& refinement, MatrixView<double> z,
                               const std::function<void(int)>& done) const {
  if (refinement.steps < 1) throw InputError("refine: expected at least 1 step");
  std::vector<double> accepted((range.size() + block - 1) / block);
  std::atomic<int> finished = 0;
  for_blocks(range.size(), [&](int k, Range part) {
    const std::function<void()> beat = [&] {
      if (done) done(finished);
    };
    beat();
    const std::vector<int> indices = indices_of({range.begin + part.begin, range.begin + part.end});
    const int whole = (refinement.first + range.begin) / block + k;  // the block's place in all data
    const PhiloxSource random(derived_seed(refinement.seed, static_cast<std::uint64_t>(whole)));
    const MatrixView<double> moved = z.columns(part.begin, part.end);
    model_->draw_q(data, indices, random, moved);
    accepted[k] = part.size() * model_->refine(data, indices, refinement.steps, random, moved, beat);
    finished += part.size();
    beat();
  });
  return std::accumulate(accepted.begin(), accepted.end(), 0.0) / std::max(1, range.size());
}

std::uint64_t TrainedNetworks::draw_seed(std::uint64_t seed, int draw) {
  return seed * 1'000'003 + static_cast<std::uint64_t>(draw);
}

void TrainedNetworks::decode(MatrixView<const double> z, MatrixView<double> x) const {
  for_blocks(z.cols(),
             [&](int, Range part) { model_->mean(z.columns(part.begin, part.end), x.columns(part.begin, part.end)); });
}

void TrainedNetworks::outputs(MatrixView<const double> z, MatrixView<double> out) const {
  for_blocks(z.cols(), [&](int, Range part) {
    model_->outputs(z.columns(part.begin, part.end), out.columns(part.begin, part.end));
  });
}

void TrainedNetworks::draw_z(std::uint64_t seed, int first, MatrixView<double> z) const {
  draw_prior(PhiloxSource(seed), first, z);
}

void TrainedNetworks::draw_x(std::uint64_t seed, int first, MatrixView<const double> z, MatrixView<double> x) const {
  const PhiloxSource random(seed);
  for_blocks(z.cols(), [&](int, Range part) {
    model_->draw(random, first + part.begin, z.columns(part.begin, part.end), x.columns(part.begin, part.end));
  });
}

// Control variates are of no use after training, and there may be as many of them as there were data.
Engine& TrainedNetworks::engine() {
  if (!engine_) {
    TrainConfig config = config_.train;
    config.batch = 1;
    config.baseline = LatentBaseline::none;
    engine_ = make_engine(config_.engine, config, stand_in_, {.threads = threads_});
    engine_->restore(state_);
  }
  return *engine_;
}

std::vector<PointEvaluation> TrainedNetworks::evaluate(const DataSet& data, const EvaluationConfig& config,
                                                       const std::function<void(int)>& progress) {
  const std::lock_guard held(engine_in_use_);
  return engine().evaluate(data, config, progress);
}

std::vector<AnnealedPoint> TrainedNetworks::anneal(const DataSet& data, const AnnealingConfig& config,
                                                   const std::function<void(int)>& progress, int first) {
  const std::lock_guard held(engine_in_use_);
  return engine().anneal(data, {.config = config, .first = first}, progress);
}

RunToUse read_run(const fs::path& folder, const fs::path& data_dir, int threads,
                  const std::function<void(const std::string&)>& say, WhichModel which) {
  check_is_training(folder);
  RunToUse run{read_train_config(folder / "config.toml", threads, EngineKind::automatic), {}};
  FoundCheckpoint found = checkpoint_of(folder, which, say);
  run.checkpoint = std::move(found.checkpoint);
  if (!run.checkpoint.data) run.checkpoint.data = facts_of(run.config, load_run_data(run.config, data_dir));
  std::map<std::string, std::string> wanted = identity_of(run.config), stored = run.checkpoint.identity;
  stored.erase("data.sha256");
  check_identity(found.path, stored, wanted);
  return run;
}

}  // namespace hone
