#pragma once

#include <span>
#include <string>
#include <string_view>

#include "app/run/train_config.hpp"

namespace hone {

// The files of configs/, which are compiled into the program.
struct ShippedConfig {
  std::string_view path;  // in configs: "paper/vae-mnist-vcd.toml"
  std::string_view text;
};
std::span<const ShippedConfig> shipped_configs();

// Reads a file of settings. Where there is none, "configs/best/vae-mnist.toml" and "best/vae-mnist.toml" mean the one
// in the program. Returns whether it was that one.
bool read_config(Settings& settings, const std::string& file);

// One of them, read but not resolved. Throws InputError if there is none at this path.
TrainRunConfig shipped_config(const std::string& path);
// The one of configs/paper with this name, such as "vae-mnist-vcd".
TrainRunConfig paper_config(const std::string& name);

}  // namespace hone
