#include "app/run/trained_model.hpp"

#include <fmt/format.h>

#include "app/run/recipe.hpp"
#include "app/run/run_folder.hpp"
#include "app/run/suited_data.hpp"
#include "app/run/train_record.hpp"
#include "hone/base/error.hpp"
#include "hone/engine/engines.hpp"
#include "hone/engine/lead.hpp"
#include "hone/latent/likelihoods.hpp"

namespace hone {

namespace fs = std::filesystem;

DataSplits load_run_data(const TrainRunConfig& config, const fs::path& data_dir, ColourPlanes planes) {
  try {
    DataRequest request = data_request(config, data_dir);
    request.planes = planes;
    return load_data(request);
  } catch (const KeyError&) {
    throw;
  } catch (const InputError& error) {
    throw KeyError("data", error.what());
  }
}

std::unique_ptr<Engine> engine_of(const TrainRunConfig& config, const DataSplits& data,
                                  std::vector<std::uint64_t> seeds, Lead* lead) {
  const int batch = config.train.batch;
  if (batch > data.train.size())
    throw KeyError("batch", fmt::format("{} is more than the {} training data; leave it out, or give a smaller one",
                                        batch, data.train.size()));
  try {
    check_scale(config.train.model.density(), data.train);
    if (lead) return lead->engine(recipe_of(config, seeds), data.train);
    return make_engine(config.engine, config.train, data.train,
                       {.seeds = std::move(seeds), .threads = *config.threads});
  } catch (const DataError& error) {
    throw unsuited_training_data(config, data, error.what());
  }
}

std::unique_ptr<TrainedModel> load_model(const fs::path& folder, const fs::path& data_dir, int threads,
                                         const std::function<void(const std::string&)>& say, Lead* lead,
                                         WhichModel which) {
  check_is_training(folder);
  auto model = std::make_unique<TrainedModel>();
  model->config = read_train_config(folder / "config.toml", threads);
  const FoundCheckpoint found = checkpoint_of(folder, which, say);
  model->data = load_run_data(model->config, data_dir);
  check_identity(found.path, found.checkpoint.identity, identity_of(model->config, model->data.train));
  if (lead && (model->config.engine != EngineKind::cuda || !cuda_support().missing.empty()))
    model->config.engine = EngineKind::cpu;
  model->engine = engine_of(model->config, model->data, {model->config.train.seed}, lead);
  model->engine->restore(found.checkpoint.state);
  return model;
}

}  // namespace hone
