#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "app/run/checkpoint.hpp"
#include "app/run/train_config.hpp"
#include "hone/engine/engine.hpp"
#include "hone/engine/frozen.hpp"

namespace hone {

// Data [begin, end) of a data set.
struct Range {
  int begin = 0, end = 0;
  int size() const { return end - begin; }
};

// A trained model and its q, for use: what `hone encode`, `reconstruct`, `sample` and `score` and the Python estimators
// compute. It needs no training data. Networks compute on the cpu, log-likelihoods on the configuration's engine; no
// result depends on the number of threads. Const functions may be called from several threads.
class TrainedNetworks {
 public:
  // Results belong to blocks of this many data, counted from the first datum. Ranges begin with a block.
  static constexpr int block = 500;

  // Takes a resolved configuration and a checkpoint with facts about its data. Throws InputError if they do not match.
  TrainedNetworks(TrainRunConfig config, Checkpoint checkpoint, int threads);

  const TrainRunConfig& config() const { return config_; }
  const TrainState& state() const { return state_; }
  const DataFacts& data() const { return data_; }
  int latent() const { return model_->latent(); }
  int pixels() const { return model_->pixels(); }
  int outputs() const { return model_->outputs(); }

  // Throws DataError if they do not suit the model; it counts them from `first`.
  void check(const DataSet& data, int first = 0) const;

  // Means and standard deviations of q(z | x), (D, range) each.
  void encode(const DataSet& data, Range range, MatrixView<double> mean, MatrixView<double> sd) const;

  // One draw of q per datum, moved by `steps` steps of the run's kernel: z is (D, range). Returns the mean acceptance.
  // `done` is told how many data are finished, by several threads; it may throw Stopped.
  struct Refinement {
    int steps = 8;
    std::uint64_t seed = 1;
    int first = 0;  // the place of the first datum among all of which these are a part; whole blocks before
  };
  double refine(const DataSet& data, Range range, const Refinement& refinement, MatrixView<double> z,
                const std::function<void(int)>& done) const;
  // The seed of draw k, if there are several per datum.
  static std::uint64_t draw_seed(std::uint64_t seed, int draw);

  void decode(MatrixView<const double> z, MatrixView<double> x) const;     // E[x | z], (pixels, n)
  void outputs(MatrixView<const double> z, MatrixView<double> out) const;  // natural parameters of x, (outputs, n)

  // Draws from the model: z ~ N(0, I), and x ~ p(x | z). Column c is draw first + c of the seed.
  void draw_z(std::uint64_t seed, int first, MatrixView<double> z) const;
  void draw_x(std::uint64_t seed, int first, MatrixView<const double> z, MatrixView<double> x) const;

  // Log-likelihoods, as `hone eval` estimates them. One thread at a time; others wait.
  std::vector<PointEvaluation> evaluate(const DataSet& data, const EvaluationConfig& config,
                                        const std::function<void(int)>& progress);
  std::vector<AnnealedPoint> anneal(const DataSet& data, const AnnealingConfig& config,
                                    const std::function<void(int)>& progress, int first = 0);

 private:
  void for_blocks(int count, const std::function<void(int, Range)>& work) const;
  Engine& engine();  // call while holding engine_in_use_

  TrainRunConfig config_;
  TrainState state_;
  DataFacts data_;
  DataSet stand_in_;
  int threads_;
  std::unique_ptr<FrozenModel> model_;
  std::mutex engine_in_use_;
  std::unique_ptr<Engine> engine_;  // made when it is first needed
};

// A run folder's configuration (on whichever engine is there) and a checkpoint, with facts about the
// data; those of version 0.1.0 have none, and the run's data must be there. Throws InputError.
struct RunToUse {
  TrainRunConfig config;
  Checkpoint checkpoint;
};
RunToUse read_run(const std::filesystem::path& folder, const std::filesystem::path& data_dir, int threads,
                  const std::function<void(const std::string&)>& say, WhichModel which = WhichModel::newest);

}  // namespace hone
