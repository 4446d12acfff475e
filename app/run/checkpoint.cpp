#include "app/run/checkpoint.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <set>
#include <string>
#include <utility>

#include "app/run/train_config.hpp"
#include "hone/base/error.hpp"
#include "hone/base/file.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;

FoundCheckpoint read_checkpoint(const fs::path& path) {
  const std::string bytes = read_file(path);
  return {path, decode_checkpoint({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}, path.string())};
}

// Gives the current checkpoint a second name, so that a file with the first name exists at any moment.
void keep_previous(const fs::path& current, const fs::path& previous) {
  const fs::path second = unfinished_name(previous);
  const auto renamed = [&](const fs::path& from) {
    if (std::rename(from.c_str(), previous.c_str()) != 0)
      throw Error(fmt::format("{}: renaming to this name failed: {}", previous.string(), std::strerror(errno)));
  };
  std::error_code ignored;
  fs::remove(second, ignored);  // left by a killed process that had the same process id
  if (::link(current.c_str(), second.c_str()) == 0) {
    renamed(second);
    fs::remove(second, ignored);  // renaming does nothing if both names are the same file
  } else if (errno != ENOENT) {
    renamed(current);  // no hard links on this file system: for a moment only the previous one exists, complete
  }
}

}  // namespace

DataSet DataFacts::stand_in(int categories) const {
  if (!mean.empty()) return DataSet(mean, shape);
  std::vector<std::uint8_t> row(static_cast<std::size_t>(shape.pixels()));
  for (std::size_t i = 0; categories > 0 && i < row.size(); i += static_cast<std::size_t>(categories)) row[i] = 1;
  BitRows bits(shape.pixels());
  bits.append(row);
  return DataSet(std::move(bits), shape);
}

void write_checkpoint(const fs::path& folder, const Checkpoint& checkpoint) {
  const fs::path current = folder / checkpoint_name;
  write_file(current, encode(checkpoint), [&] { keep_previous(current, folder / previous_checkpoint_name); });
}

std::optional<FoundCheckpoint> find_checkpoint(const fs::path& folder,
                                               const std::function<void(const std::string&)>& say) {
  const std::string missing = (folder / checkpoint_name).string() + ": missing";
  std::string faults;
  for (const std::string name : {checkpoint_name, previous_checkpoint_name}) {
    const fs::path path = folder / name;
    if (!fs::exists(path)) continue;
    try {
      FoundCheckpoint found = read_checkpoint(path);
      if (name == previous_checkpoint_name)
        say(fmt::format("{}\nthe previous one is good: {}, iteration {}", faults.empty() ? missing : faults,
                        path.string(), found.checkpoint.state.iteration));
      return found;
    } catch (const InputError& error) {
      faults += (faults.empty() ? "" : "\n") + std::string(error.what());
    }
  }
  if (!faults.empty()) throw InputError(fmt::format("no good checkpoint:\n{}", faults));
  return std::nullopt;
}

FoundCheckpoint checkpoint_of(const fs::path& folder, WhichModel which,
                              const std::function<void(const std::string&)>& say) {
  if (which == WhichModel::best) {
    const fs::path path = folder / best_checkpoint_name;
    if (!fs::exists(path))
      throw InputError(fmt::format("{}: there is no {}; hone train writes it where validation.every is above 0",
                                   folder.string(), best_checkpoint_name));
    return read_checkpoint(path);
  }
  auto found = find_checkpoint(folder, say);
  if (!found) throw InputError(fmt::format("{}: the run has no checkpoint", folder.string()));
  return std::move(*found);
}

void set_aside_damaged(const fs::path& folder) {
  std::error_code missing;  // there may be none: see keep_previous
  fs::rename(folder / checkpoint_name, folder / "checkpoint.damaged.safetensors", missing);
}

void check_identity(const fs::path& origin, const std::map<std::string, std::string>& stored,
                    const std::map<std::string, std::string>& wanted) {
  std::map<std::string, std::string> whole = stored;
  for (const auto& [key, value] : identity_of_earlier_versions(stored))
    if (wanted.contains(key)) whole.emplace(key, value);
  const auto value_of = [](const auto& map, const std::string& key) {
    const auto entry = map.find(key);
    return entry == map.end() ? std::string("nothing") : entry->second;
  };
  const auto shown = [](const std::string& value) { return value.empty() ? "nothing" : value; };
  const std::string data = "data.sha256";  // looked at last: it follows from other keys, too
  std::set<std::string> keys;
  for (const auto* map : {&wanted, &std::as_const(whole)})
    for (const auto& entry : *map) keys.insert(entry.first);
  for (const std::string& key : keys) {
    const std::string before = value_of(whole, key), now = value_of(wanted, key);
    // Earlier versions stored paths with . and .. in them.
    if (key != data && fs::path(before).lexically_normal() != fs::path(now).lexically_normal())
      throw KeyError(key, fmt::format("{} has {} = {}, which is now {}; this defines the model and cannot change",
                                      origin.string(), key, shown(before), shown(now)));
  }
  if (value_of(whole, data) != value_of(wanted, data))
    throw KeyError("data", fmt::format("the training data have changed: {} has data.sha256 = {}, which is now {}",
                                       origin.string(), value_of(whole, data), value_of(wanted, data)));
}

}  // namespace hone
