#pragma once

#include <span>
#include <string>
#include <string_view>

#include "app/run/train_config.hpp"

namespace hone {

// The files of configs/paper, which are compiled into the program.
struct PaperConfig {
  std::string_view name;  // of the file, without .toml
  std::string_view text;
};
std::span<const PaperConfig> paper_configs();

// One of them, read but not resolved. Throws InputError if there is none with this name.
TrainRunConfig paper_config(const std::string& name);

}  // namespace hone
