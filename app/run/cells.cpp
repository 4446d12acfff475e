#include "app/run/cells.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <string_view>

#include "app/run/json.hpp"
#include "hone/base/error.hpp"
#include "hone/base/parallel.hpp"

namespace hone {
namespace fs = std::filesystem;
namespace {

// A config.toml without the help behind its keys, which differs between versions. Comment lines stay: they
// describe some cells beyond their keys.
std::string without_help(const std::string& config) {
  std::string text;
  for (std::size_t at = 0; at < config.size();) {
    const std::size_t end = std::min(config.find('\n', at), config.size());
    const std::string_view line = std::string_view(config).substr(at, end - at);
    text.append(line.starts_with('#') ? line : line.substr(0, line.rfind("  # "))).push_back('\n');
    at = end + 1;
  }
  return text;
}

// Removes what earlier claims left of a cell: ID~CLAIM.partial, and ID.partial of older versions.
void remove_partial(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> left = {folder.string() + ".partial"};
  for (const auto& entry : fs::directory_iterator(folder.parent_path(), error))
    if (const std::string name = entry.path().filename().string();
        name.starts_with(folder.filename().string() + "~") && name.ends_with(".partial"))
      left.push_back(entry.path());
  for (const fs::path& path : left) fs::remove_all(path, error);
}

}  // namespace

CellState state_of(const fs::path& experiment, const Cell& cell) {
  const fs::path folder = experiment / "cells" / cell.id;
  std::error_code error;
  if (!fs::exists(folder / "summary.json", error) || !fs::exists(folder / "config.toml", error) ||
      without_help(read_file(folder / "config.toml")) != without_help(cell.config))
    return CellState::to_do;
  return parse_json(read_file(folder / "summary.json")).is_object() ? CellState::done : CellState::damaged;
}

void check_experiment_folder(const fs::path& folder) {
  std::error_code error;
  if (fs::exists(folder, error) && !fs::is_directory(folder, error))
    throw InputError(fmt::format("{}: exists and is not a folder", folder.string()));
  const bool fresh = !fs::exists(folder, error) || fs::is_empty(folder, error);
  if (!fresh && !fs::is_directory(folder / "cells", error))
    throw InputError(
        fmt::format("{}: the folder holds something other than an experiment; choose another one", folder.string()));
}

fs::path lock_of(const fs::path& experiment, const std::string& cell) { return experiment / "locks" / cell; }

CellList::CellList(fs::path folder, std::vector<Cell> cells) : folder_(std::move(folder)), cells_(std::move(cells)) {
  check_experiment_folder(folder_);
}

fs::path CellList::folder_of(std::size_t cell) const { return folder_ / "cells" / cells_[cell].id; }

// In a folder of this claim's own: a process that stalled and lost its claim may still write to its folder.
void CellList::make(std::size_t cell, const CellLock& claim) const {
  const fs::path folder = folder_of(cell);
  const fs::path partial = fmt::format("{}~{}.partial", folder.string(), claim.name());
  const auto check = [&] {
    if (!claim.lost()) return;
    std::error_code error;
    fs::remove_all(partial, error);
    throw Error(fmt::format("{}: another process took this cell over, because this one stood still for more than {} s",
                            folder.string(), CellLock::stale_seconds));
  };
  fs::remove_all(partial);
  try {
    cells_[cell].run(RunFolder(partial));
  } catch (...) {  // perhaps because the other process has finished and removed this folder
    check();
    throw;
  }
  check();
  fs::remove_all(folder);  // has another configuration, or is damaged
  fs::rename(partial, folder);
  remove_partial(folder);
}

// Processes that were killed leave the claims of cells that they had just finished, and half-made claims.
void CellList::remove_old_claims() const {
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    const fs::path lock = lock_of(folder_, cells_[i].id);
    if (std::error_code error; fs::exists(lock, error) && is_done(i)) (void)CellLock::take(lock);  // and gives it back
  }
  CellLock::sweep(folder_ / "locks");
}

void CellList::run(int threads, Progress& progress, const std::atomic<int>* stop) const {
  std::error_code error;
  fs::create_directories(folder_ / "cells", error);
  if (!error) fs::create_directories(folder_ / "locks", error);
  if (error) throw InputError(fmt::format("{}: cannot create this folder: {}", folder_.string(), error.message()));
  std::vector<std::size_t> todo;
  for (std::size_t i = 0; i < cells_.size(); ++i)
    if (!is_done(i)) todo.push_back(i);
  std::atomic<std::size_t> next = 0;
  std::atomic<bool> failed = false;
  std::mutex mutex;
  auto done = static_cast<std::int64_t>(cells_.size() - todo.size());
  progress.update(done, "");

  const auto work = [&] {
    while (!failed) {
      const std::size_t i = next++;
      if (i >= todo.size()) return;
      if (stop && *stop != 0) throw Stopped();
      const auto claim = CellLock::take(lock_of(folder_, cells_[todo[i]].id));
      if (!claim) continue;                          // another process runs it
      if (!is_done(todo[i])) make(todo[i], *claim);  // it may have just done so
      const std::lock_guard lock(mutex);
      progress.update(++done, cells_[todo[i]].id);
    }
  };
  Team team(threads);
  team.for_shares(team.threads(), [&](int, int, int) {
    try {
      work();
    } catch (...) {
      failed = true;
      throw;
    }
  });
  remove_old_claims();
}

}  // namespace hone
