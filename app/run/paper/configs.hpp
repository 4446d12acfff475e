#pragma once

#include <span>
#include <string>
#include <string_view>

#include "app/run/train_config.hpp"

namespace hone {

// The files of configs/paper, which travel inside the library.
struct PaperConfig {
  std::string_view name;  // of the file, without .toml
  std::string_view text;
};
std::span<const PaperConfig> paper_configs();

// One of them, read, not resolved. InputError where there is none of the name.
TrainRunConfig paper_config(const std::string& name);

}  // namespace hone
