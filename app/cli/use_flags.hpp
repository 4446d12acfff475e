#pragma once

#include <CLI/CLI.hpp>

#include "app/run/use.hpp"

namespace hone {

enum class DataArgument { required, optional };

// What `encode`, `reconstruct`, `sample` and `score` share: arguments, flags and the way they run.
struct UseFlags {
  UseOptions options;
  std::string out;
  int points = 0;
  bool quiet = false;
  // The file where a stopped command keeps its results for --resume; null if it has no --resume.
  std::function<std::filesystem::path(const std::filesystem::path& out)> unfinished = {};

  void add(CLI::App& command, DataArgument data, const std::string& formats);
  void add_seed(CLI::App& command);
  // Calls work(options), which returns a line for the user; a signal stops it.
  void run(const std::function<std::string(const UseOptions&)>& work);
};

}  // namespace hone
