#include "app/run/paper/configs.hpp"

#include <algorithm>

namespace hone {

TrainRunConfig shipped_config(const std::string& path) {
  const auto configs = shipped_configs();
  const auto found = std::ranges::find(configs, path, &ShippedConfig::path);
  if (found == configs.end()) throw InputError("there is no configs/" + path);
  TrainRunConfig config;
  train_settings(config).read_text(std::string(found->text), path);
  return config;
}

TrainRunConfig paper_config(const std::string& name) { return shipped_config("paper/" + name + ".toml"); }

}  // namespace hone
