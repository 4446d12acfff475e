#include "app/cli/flags.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>

#include "hone/base/error.hpp"

namespace hone {

struct SettingFlags::State {
  std::string config;
  std::vector<std::string> text;  // one per setting
  std::vector<CLI::Option*> option;
};

SettingFlags::SettingFlags(CLI::App& command, Settings& settings, ConfigFlag config)
    : settings_(settings), state_(std::make_shared<State>()) {
  const auto& entries = settings.entries();
  state_->text.resize(entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto& entry = entries[i];
    const std::string help = fmt::format("{}: {} [{}]", entry.help, entry.takes, entry.default_text);
    state_->option.push_back(command.add_option(entry.flag(), state_->text[i], help)->type_name(entry.flag_takes));
  }
  if (config == ConfigFlag::none) return;
  command.add_option("--config", state_->config, "read settings from a TOML file, such as config.toml of a run")
      ->option_text("FILE");
}

void SettingFlags::apply() const {
  if (!state_->config.empty()) settings_.read_file(state_->config);
  for (std::size_t i = 0; i < state_->option.size(); ++i)
    if (state_->option[i]->count() > 0)
      settings_.set(settings_.entries()[i].key, state_->text[i], settings_.entries()[i].flag());
}

std::vector<std::uint64_t> seeds_of(const std::string& text) {
  constexpr std::uint64_t most = 10000;
  const auto refuse = [&](const std::string& why) {
    throw InputError(
        fmt::format("--seeds: '{}' is not allowed{}; expected a number of runs from 1 to {}, or a list of "
                    "different seeds such as 3,5,8",
                    text, why, most));
  };
  std::vector<std::uint64_t> seeds;
  for (const char* at = text.data();; ++at) {
    std::uint64_t seed = 0;
    const auto [end, error] = std::from_chars(at, text.data() + text.size(), seed);
    if (error != std::errc()) refuse("");
    if (std::ranges::find(seeds, seed) != seeds.end()) refuse(fmt::format(": {} appears twice", seed));
    seeds.push_back(seed);
    at = end;
    if (at == text.data() + text.size()) break;
    if (*at != ',') refuse("");
  }
  if (seeds.size() > 1) return seeds;
  if (seeds.front() < 1 || seeds.front() > most) refuse("");
  seeds.resize(seeds.front());
  std::iota(seeds.begin(), seeds.end(), std::uint64_t{1});
  return seeds;
}

}  // namespace hone
