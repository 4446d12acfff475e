#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "app/run/settings.hpp"

namespace hone {

enum class ConfigFlag { offered, none };

// Gives a subcommand one flag per setting, and --config FILE to read a file of them; flags override the file.
// `settings` must outlive the subcommand. Call apply() in the subcommand's callback.
class SettingFlags {
 public:
  SettingFlags(CLI::App& command, Settings& settings, ConfigFlag config = ConfigFlag::offered);
  void apply() const;

 private:
  struct State;
  Settings& settings_;
  std::shared_ptr<State> state_;
};

// Parses --seeds: "3" means the seeds 1, 2, 3; "3,5,8" lists them. No seed may come twice. Throws InputError.
std::vector<std::uint64_t> seeds_of(const std::string& text);

}  // namespace hone
