#pragma once

#include <CLI/CLI.hpp>
#include <memory>

#include "hone/run/settings.hpp"

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

}  // namespace hone
