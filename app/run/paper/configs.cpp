#include "app/run/paper/configs.hpp"

#include <algorithm>

namespace hone {

TrainRunConfig paper_config(const std::string& name) {
  const auto configs = paper_configs();
  const auto found = std::ranges::find(configs, name, &PaperConfig::name);
  if (found == configs.end()) throw InputError("configs/paper has no " + name + ".toml");
  TrainRunConfig config;
  train_settings(config).read_text(std::string(found->text), name + ".toml");
  return config;
}

}  // namespace hone
