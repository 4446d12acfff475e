// A checkpoint as the bytes of its file.

#include <fmt/format.h>

#include <algorithm>

#include "app/run/checkpoint.hpp"
#include "app/run/safetensors.hpp"
#include "hone/base/error.hpp"
#include "hone/base/random.hpp"

namespace hone {
namespace {

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

}  // namespace

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

}  // namespace hone
