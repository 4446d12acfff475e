#include "app/run/paper/configs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "hone/base/error.hpp"
#include "hone/base/spelling.hpp"

namespace hone {

bool read_config(Settings& settings, const std::string& file) {
  std::error_code error;
  if (std::filesystem::exists(file, error) || error) {
    settings.read_file(file);
    return false;
  }
  std::vector<std::string> names;
  for (const ShippedConfig& config : shipped_configs()) {
    names.push_back("configs/" + std::string(config.path));
    if (file != config.path && file != names.back()) continue;
    settings.read_text(std::string(config.text), file);
    return true;
  }
  const std::string name = file.starts_with("configs/") ? file : "configs/" + file;
  throw InputError(fmt::format("{}: cannot be read: {}{}", file, std::strerror(ENOENT), did_you_mean(name, names)));
}

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
