#include "app/run/checkpoint.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "app/run/safetensors.hpp"
#include "app/run/train_config.hpp"
#include "hone/base/error.hpp"
#include "hone/base/file.hpp"
#include "hone/base/random.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view run_prefix = "run.";
constexpr std::string_view identity_prefix = "config.";
constexpr std::string_view data_prefix = "data.";

template <class T>
StoredTensor vector_of(std::string name, std::vector<T> values) {
  return {run_prefix.data() + std::move(name), {static_cast<std::int64_t>(values.size())}, std::move(values)};
}

void add_metrics(const std::string& name, const TrainMetrics& metrics, std::vector<StoredTensor>& out) {
  std::vector<std::int64_t> counts;
  std::vector<double> moments;
  for (const Moments* m : {&metrics.elbo, &metrics.vcd, &metrics.acceptance}) {
    const RawMoments raw = m->raw();
    counts.push_back(static_cast<std::int64_t>(raw.count));
    moments.insert(moments.end(), {raw.mean, raw.squares});
  }
  counts.insert(counts.end(), {metrics.rejected_nonfinite, metrics.dropped_draws});
  out.push_back(vector_of(name + ".counts", std::move(counts)));
  out.push_back(vector_of(name + ".moments", std::move(moments)));
}

void add_facts(const DataFacts& facts, std::vector<StoredTensor>& out) {
  std::vector<std::int64_t> shape = {facts.shape.rows, facts.shape.cols};
  if (facts.shape.channels > 1) shape.push_back(facts.shape.channels);
  const auto sizes = static_cast<std::int64_t>(shape.size());
  out.push_back({"data.shape", {sizes}, std::move(shape)});
  if (!facts.mean.empty()) out.push_back({"data.mean", {static_cast<std::int64_t>(facts.mean.size())}, facts.mean});
  if (facts.threshold) out.push_back({"data.threshold", {1}, std::vector<double>{*facts.threshold}});
}

class CheckpointReader {
 public:
  CheckpointReader(TensorFile file, const std::string& origin) : file_(std::move(file)), origin_(origin) {}

  Checkpoint read() {
    if (!file_.notes.contains("sha256")) throw InputError(fmt::format("{}: not a checkpoint of hone", origin_));
    Checkpoint checkpoint;
    for (const auto& [key, value] : file_.notes)
      if (key.starts_with(identity_prefix)) checkpoint.identity[key.substr(identity_prefix.size())] = value;
    const auto iterations = values<std::int64_t>("iterations", 2);
    checkpoint.state.iteration = iteration(iterations[0]);
    checkpoint.counters.reported = iteration(iterations[1]);
    checkpoint.state.step_size = values<double>("step_size", 1)[0];
    checkpoint.counters.interval = metrics("interval");
    checkpoint.counters.last = metrics("last");
    const auto totals = values<std::int64_t>("totals", 2);
    checkpoint.counters.rejected_nonfinite = totals[0];
    checkpoint.counters.dropped_draws = totals[1];
    checkpoint.data = facts();
    for (StoredTensor& tensor : file_.tensors) {
      if (tensor.name.starts_with(run_prefix) || tensor.name.starts_with(data_prefix)) continue;
      NamedArray array{std::move(tensor.name), std::move(tensor.shape), {}};
      if (auto* floats = std::get_if<std::vector<float>>(&tensor.values)) array.values = std::move(*floats);
      if (auto* doubles = std::get_if<std::vector<double>>(&tensor.values)) array.values = std::move(*doubles);
      checkpoint.state.arrays.push_back(std::move(array));
    }
    return checkpoint;
  }

 private:
  template <class T>
  std::vector<T> values(const std::string& name, std::size_t size) const {
    return tensor<T>(run_prefix.data() + name, size);
  }
  template <class T>
  std::vector<T> tensor(const std::string& name, std::size_t size) const {
    if (const StoredTensor* stored = find(name)) {
      const auto* found = std::get_if<std::vector<T>>(&stored->values);
      if (found && found->size() == size) return *found;
    }
    throw InputError(fmt::format("{}: '{}' is missing or has another size or type", origin_, name));
  }
  const StoredTensor* find(const std::string& name) const {
    const auto found = std::ranges::find(file_.tensors, name, &StoredTensor::name);
    return found == file_.tensors.end() ? nullptr : &*found;
  }

  std::optional<DataFacts> facts() const {
    const StoredTensor* stored = find("data.shape");
    if (!stored) return {};
    constexpr std::int64_t most = 100'000'000;
    const bool coloured = stored->shape == std::vector<std::int64_t>{3};
    auto shape = tensor<std::int64_t>("data.shape", coloured ? 3 : 2);
    if (!coloured) shape.push_back(1);
    std::int64_t values = 1;
    for (const std::int64_t size : shape) values = size < 1 || size > most / values ? most + 1 : values * size;
    if (values > most)
      throw InputError(fmt::format("{}: 'data.shape' {} is no shape of data", origin_, fmt::join(shape, " × ")));
    DataFacts facts{{static_cast<int>(shape[0]), static_cast<int>(shape[1]), static_cast<int>(shape[2])}, {}, {}};
    if (find("data.mean")) facts.mean = tensor<double>("data.mean", static_cast<std::size_t>(facts.shape.pixels()));
    if (find("data.threshold")) facts.threshold = tensor<double>("data.threshold", 1)[0];
    return facts;
  }

  std::uint32_t iteration(std::int64_t value) const {
    if (value < 0 || value >= assessment_iteration)
      throw InputError(fmt::format("{}: {} is no number of iterations", origin_, value));
    return static_cast<std::uint32_t>(value);
  }

  TrainMetrics metrics(const std::string& name) const {
    const auto counts = values<std::int64_t>(name + ".counts", 5);
    const auto moments = values<double>(name + ".moments", 6);
    const auto of = [&](std::size_t i) {
      return Moments(RawMoments{static_cast<std::uint64_t>(counts[i]), moments[2 * i], moments[2 * i + 1]});
    };
    return {
        .elbo = of(0), .vcd = of(1), .acceptance = of(2), .rejected_nonfinite = counts[3], .dropped_draws = counts[4]};
  }

  TensorFile file_;
  const std::string& origin_;
};

FoundCheckpoint read_checkpoint(const fs::path& path) {
  const std::string bytes = read_file(path);
  return {path, decode_checkpoint({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}, path.string())};
}

// Gives the current checkpoint a second name, so that a file with the first name exists at any moment.
void keep_previous(const fs::path& current, const fs::path& previous) {
  const fs::path second = unfinished_name(previous);
  const auto renamed = [&](const fs::path& from) {
    if (std::rename(from.c_str(), previous.c_str()) != 0)
      throw Error(fmt::format("{}: renaming failed: {}", from.string(), std::strerror(errno)));
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

std::vector<std::uint8_t> encode(const Checkpoint& checkpoint) {
  TensorFile file;
  for (const auto& [key, value] : checkpoint.identity) file.notes[identity_prefix.data() + key] = value;
  const RunCounters& counters = checkpoint.counters;
  file.tensors.push_back(
      vector_of("iterations", std::vector<std::int64_t>{checkpoint.state.iteration, counters.reported}));
  file.tensors.push_back(
      vector_of("totals", std::vector<std::int64_t>{counters.rejected_nonfinite, counters.dropped_draws}));
  file.tensors.push_back(vector_of("step_size", std::vector<double>{checkpoint.state.step_size}));
  add_metrics("interval", counters.interval, file.tensors);
  add_metrics("last", counters.last, file.tensors);
  if (checkpoint.data) add_facts(*checkpoint.data, file.tensors);
  for (const NamedArray& array : checkpoint.state.arrays)
    std::visit([&](const auto& values) { file.tensors.push_back({array.name, array.shape, values}); }, array.values);
  return to_safetensors(file);
}

Checkpoint decode_checkpoint(std::span<const std::uint8_t> bytes, const std::string& origin) {
  return CheckpointReader(from_safetensors(bytes, origin), origin).read();
}

void write_checkpoint(const fs::path& folder, const Checkpoint& checkpoint) {
  const fs::path current = folder / checkpoint_name, fresh = unfinished_name(current);
  write_file(fresh, encode(checkpoint));
  keep_previous(current, folder / previous_checkpoint_name);
  place_file(fresh, current);
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
  for (const auto* map : {&wanted, &std::as_const(whole)})
    for (const auto& entry : *map) {
      const std::string& key = entry.first;
      const std::string before = value_of(whole, key), now = value_of(wanted, key);
      if (before != now)
        throw KeyError(key, fmt::format("{} has {} = {}, which is now {}; this defines the model and cannot change",
                                        origin.string(), key, before, now));
    }
}

}  // namespace hone
