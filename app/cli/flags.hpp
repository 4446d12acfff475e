#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "app/run/settings.hpp"

namespace hone {

enum class ConfigFlag { offered, none };

// Gives a subcommand a flag for every setting, and --config FILE for a file of them; flags win over the file.
// `settings` must live as long as the subcommand. Call apply() in the subcommand's callback.
class SettingFlags {
 public:
  SettingFlags(CLI::App& command, Settings& settings, ConfigFlag config = ConfigFlag::offered);
  void apply() const;

 private:
  struct State;
  Settings& settings_;
  std::shared_ptr<State> state_;
};

// What --seeds says: "3" is the seeds 1, 2, 3; "3,5,8" are these. Each once; InputError that names the flag.
std::vector<std::uint64_t> seeds_of(const std::string& text);

}  // namespace hone
