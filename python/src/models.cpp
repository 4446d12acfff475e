#include "python/src/models.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "app/run/export.hpp"
#include "hone/base/error.hpp"
#include "hone/latent/model.hpp"
#include "python/src/messages.hpp"

namespace hone::python {
namespace {

ImageShape image_of(const std::array<int, 3>& shape) { return {shape[0], shape[1], shape[2]}; }

template <class T, class Array>
Data borrowed(Array& values, const std::array<int, 3>& shape) {
  const std::span<const T> numbers(values.data(), values.shape(0) * values.shape(1));
  DataSet packed;
  {
    const nb::gil_scoped_release released;
    packed = packed_if_binary(DataSet(numbers, image_of(shape)));
  }
  if (packed.binary()) return {std::move(packed), nb::none()};
  return {std::move(packed), nb::cast(values, nb::rv_policy::reference)};
}

TrainRunConfig config_of(const SettingTexts& texts) {
  TrainRunConfig config;
  Settings settings = train_settings(config);
  apply(settings, texts);
  resolve(config);
  return config;
}

nb::bytes stored(const Checkpoint& checkpoint) {
  const std::vector<std::uint8_t> bytes = encode(checkpoint);
  return nb::bytes(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Checkpoint checkpoint_of(const nb::bytes& bytes) {
  return decode_checkpoint({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}, "the checkpoint");
}

TrainRunConfig config_in(const std::string& text, int threads) {
  TrainRunConfig config;
  Settings settings = train_settings(config);
  settings.read_text(text, "config.toml");
  config.threads = threads;
  resolve(config);
  return config;
}

nb::object array_of_named(const NamedArray& array) {
  std::vector<std::size_t> shape(array.shape.begin(), array.shape.end());
  return std::visit(
      [&](const auto& values) -> nb::object {
        using T = typename std::decay_t<decltype(values)>::value_type;
        auto* kept = new std::vector<T>(values);
        const nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
        return nb::cast(nb::ndarray<nb::numpy, T>(kept->data(), shape.size(), shape.data(), owner));
      },
      array.values);
}

}  // namespace

Data bytes_of(Rows<std::uint8_t> values, const std::array<int, 3>& shape) {
  return borrowed<std::uint8_t>(values, shape);
}
Data floats_of(Rows<float> values, const std::array<int, 3>& shape) { return borrowed<float>(values, shape); }
Data doubles_of(Rows<double> values, const std::array<int, 3>& shape) { return borrowed<double>(values, shape); }

Data sparse_of(const Csr& rows) {
  const SparseRows sparse{{rows.begin.data(), rows.begin.shape(0)},
                          {rows.column.data(), rows.column.shape(0)},
                          {rows.value.data(), rows.value.shape(0)}};
  DataSet packed;
  {
    const nb::gil_scoped_release released;
    packed = packed_if_binary(DataSet(sparse, image_of(rows.shape)));
  }
  if (packed.binary()) return {std::move(packed), nb::none()};
  return {std::move(packed), nb::make_tuple(rows.begin, rows.column, rows.value)};
}

std::string resolved_config(const SettingTexts& settings) {
  TrainRunConfig config = config_of(settings);
  return train_settings(config).to_toml();
}

nb::list setting_table() {
  TrainRunConfig config;
  const Settings settings = train_settings(config);
  nb::list rows;
  for (const Settings::Entry& entry : settings.entries()) {
    nb::dict row;
    row["key"] = entry.key;
    row["help"] = entry.help;
    row["takes"] = entry.takes;
    row["default"] = entry.default_text;
    rows.append(row);
  }
  return rows;
}

nb::bytes with_identity(nb::bytes checkpoint, const std::string& key, const std::string& value) {
  Checkpoint read = checkpoint_of(checkpoint);
  TrainRunConfig config;
  Settings settings = train_settings(config);
  settings.set(key, value, key);
  for (const Settings::Entry& entry : settings.entries())
    if (entry.key == key) read.identity[key] = entry.print();
  return stored(read);
}

nb::bytes complete_checkpoint(const std::string& folder) {
  return stored(read_run(folder, {}, 1, [](const std::string& damage) { throw InputError(damage); }).checkpoint);
}

std::string train_model(const Training& training, const Parts& parts, Stop& stop, nb::object tell, nb::object say) {
  const TrainRunConfig config = config_of(training.settings);
  Watch watch(std::move(tell));
  TrainOptions options;
  options.resume = training.resume ? Resume::yes : Resume::no;
  options.stop = &stop.signal;
  options.watch = [&](std::int64_t done, std::int64_t, const std::string& note) { watch.say(note, done); };
  options.say = [&](const std::string& text) {
    const nb::gil_scoped_acquire gil;
    if (!say.is_none()) say(nb::cast(in_python(text)));
  };
  const auto set_of = [](const Data* part) { return part ? part->set : DataSet(); };
  const nb::gil_scoped_release released;
  options.data = std::make_shared<DataSplits>(
      splits_of(data_request(config, {}), parts.train.set, set_of(parts.test), set_of(parts.validation)));
  return hone::train(config, training.folder, options).to_json();
}

Networks::Networks(const std::string& config, nb::bytes checkpoint, int threads)
    : own_(std::make_unique<TrainedNetworks>(config_in(config, threads), checkpoint_of(checkpoint), threads)),
      networks_(*own_) {}

Networks::~Networks() {
  if (process_ != getpid()) static_cast<void>(own_.release());
}

void Networks::expect(const Data& data) const {
  const nb::gil_scoped_release released;
  try {
    networks_.check(data.set);
  } catch (const InputError& error) {
    throw InputError(std::string("X: ") + error.what());
  }
}

nb::tuple Networks::encode(const Data& data) const {
  expect(data);
  const int n = data.set.size(), d = networks_.latent();
  Matrix<double> mean(d, n), sd(d, n);
  {
    const nb::gil_scoped_release released;
    networks_.encode(data.set, {0, n}, mean, sd);
  }
  return nb::make_tuple(array_of(std::move(mean)), array_of(std::move(sd)));
}

nb::tuple Networks::refine(const Data& data, int steps, std::uint64_t seed, Stop& stop, nb::object tell) const {
  expect(data);
  const int n = data.set.size();
  Matrix<double> z(networks_.latent(), n);
  const double acceptance = attended(std::move(tell), stop, [&](const std::function<void(int)>& progress) {
    return networks_.refine(data.set, {0, n}, {steps, seed}, z, progress);
  });
  return nb::make_tuple(array_of(std::move(z)), acceptance);
}

nb::object Networks::decode(const Points& z) const {
  Matrix<double> x(networks_.pixels(), static_cast<int>(z.shape(0)));
  {
    const nb::gil_scoped_release released;
    networks_.decode(view_of(z), x);
  }
  return array_of(std::move(x));
}

nb::object Networks::outputs(const Points& z) const {
  Matrix<double> x(networks_.outputs(), static_cast<int>(z.shape(0)));
  {
    const nb::gil_scoped_release released;
    networks_.outputs(view_of(z), x);
  }
  return array_of(std::move(x));
}

nb::object Networks::simulate(int count, std::uint64_t seed) const {
  if (count < 1) throw InputError("n: expected at least 1");
  Matrix<double> x(networks_.pixels(), count), z(networks_.latent(), count);
  {
    const nb::gil_scoped_release released;
    networks_.draw_z(seed, 0, z);
    networks_.draw_x(seed, 0, z, x);
  }
  return array_of(std::move(x));
}

nb::dict Networks::evaluate(const Data& data, int samples, Stop& stop, nb::object tell) {
  expect(data);
  const auto points = attended(std::move(tell), stop, [&](const std::function<void(int)>& progress) {
    return networks_.evaluate(data.set, {.samples = samples}, progress);
  });
  std::vector<double> mixture, best, pilot, effective;
  for (const PointEvaluation& point : points) {
    mixture.push_back(point.mixture.log_likelihood);
    effective.push_back(point.mixture.effective_samples);
    best.push_back(point.best);
    pilot.push_back(point.pilot);
  }
  nb::dict result;
  result["mixture"] = array_of(std::move(mixture));
  result["best"] = array_of(std::move(best));
  result["pilot"] = array_of(std::move(pilot));
  result["effective_samples"] = array_of(std::move(effective));
  if (!points.empty() && points.front().exact) {
    std::vector<double> exact;
    for (const PointEvaluation& point : points) exact.push_back(*point.exact);
    result["exact"] = array_of(std::move(exact));
  }
  return result;
}

nb::dict Networks::anneal(const Data& data, int steps, int chains, Stop& stop, nb::object tell) {
  expect(data);
  AnnealingConfig config;
  if (steps > 0) config.steps = steps;
  if (chains > 0) config.chains = chains;
  const auto points = attended(std::move(tell), stop, [&](const std::function<void(int)>& progress) {
    return networks_.anneal(data.set, config, progress);
  });
  std::vector<double> value;
  for (const AnnealedPoint& point : points) value.push_back(point.estimate.log_likelihood);
  nb::dict result;
  result["ais"] = array_of(std::move(value));
  return result;
}

std::vector<int> Networks::shape() const {
  const ImageShape& shape = networks_.data().shape;
  if (shape.channels > 1) return {shape.rows, shape.cols, shape.channels};
  return shape.rows > 1 ? std::vector{shape.rows, shape.cols} : std::vector{shape.cols};
}

nb::dict Networks::parameters() const {
  nb::dict result;
  for (const NamedArray& array : networks_.state().arrays)
    if (is_parameter(array)) result[array.name.c_str()] = array_of_named(array);
  return result;
}

nb::dict Networks::torch_arrays() const {
  nb::dict result;
  const auto windows = convolutions(networks_.config().train.model, networks_.data().shape);
  for (const NamedArray& array : hone::torch_arrays(networks_.state(), windows))
    result[array.name.c_str()] = array_of_named(array);
  return result;
}

}  // namespace hone::python
