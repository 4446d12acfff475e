#include "python/src/models.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <numeric>

#include "app/run/train_record.hpp"
#include "hone/base/error.hpp"
#include "hone/base/parallel.hpp"
#include "hone/engine/engines.hpp"
#include "hone/fit/q_geometry.hpp"

namespace hone::python {
namespace {

template <class T, class Array>
Data borrowed(Array& values) {
  const std::size_t size = values.shape(0) * values.shape(1);
  const DataSet set(std::span<const T>(values.data(), size), {1, static_cast<int>(values.shape(1))});
  DataSet packed = packed_if_binary(set);
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

std::vector<int> range(int begin, int end) {
  std::vector<int> indices(end - begin);
  std::iota(indices.begin(), indices.end(), begin);
  return indices;
}

constexpr int chunk = 500;  // data that are encoded or refined at once

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

Data bytes_of(nb::ndarray<const std::uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu> values) {
  return borrowed<std::uint8_t>(values);
}
Data floats_of(nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu> values) {
  return borrowed<float>(values);
}
Data doubles_of(nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu> values) {
  return borrowed<double>(values);
}

Data sparse_of(const Csr& rows) {
  const SparseRows sparse{{rows.begin.data(), rows.begin.shape(0)},
                          {rows.column.data(), rows.column.shape(0)},
                          {rows.value.data(), rows.value.shape(0)}};
  DataSet packed = packed_if_binary(DataSet(sparse, {1, rows.columns}));
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
  Checkpoint read = decode_checkpoint({reinterpret_cast<const std::uint8_t*>(checkpoint.data()), checkpoint.size()},
                                      "the checkpoint");
  TrainRunConfig config;
  Settings settings = train_settings(config);
  settings.set(key, value, key);
  for (const Settings::Entry& entry : settings.entries())
    if (entry.key == key) read.identity[key] = entry.print();
  const std::vector<std::uint8_t> bytes = encode(read);
  return nb::bytes(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

std::string train_model(const Training& training, const Data& train, const Data* test, Stop& stop, nb::object tell,
                        nb::object say) {
  const TrainRunConfig config = config_of(training.settings);
  Watch watch(std::move(tell));
  TrainOptions options;
  options.resume = training.resume ? Resume::yes : Resume::no;
  options.stop = &stop.signal;
  options.data =
      std::make_shared<DataSplits>(splits_of(data_request(config, {}), train.set, test ? test->set : DataSet()));
  options.watch = [&](std::int64_t done, std::int64_t, const std::string& note) { watch.say(note, done); };
  options.say = [&](const std::string& text) {
    const nb::gil_scoped_acquire gil;
    if (!say.is_none()) say(nb::cast(text));
  };
  const nb::gil_scoped_release released;
  return hone::train(config, training.folder, options).to_json();
}

TrainedNetworks::TrainedNetworks(const std::string& text, nb::bytes checkpoint, const Data& stand_in, int threads)
    : stand_in_(stand_in.set), threads_(threads) {
  Settings settings = train_settings(config_);
  settings.read_text(text, "config.toml");
  config_.threads = threads;
  resolve(config_);
  state_ =
      decode_checkpoint({reinterpret_cast<const std::uint8_t*>(checkpoint.data()), checkpoint.size()}, "the checkpoint")
          .state;
  model_ = freeze(config_.train, state_, stand_in_);
}

void TrainedNetworks::expect(const Data& data) const {
  try {
    model_->check(data.set);
  } catch (const InputError& error) {
    throw InputError(std::string("X: ") + error.what());
  }
}

nb::tuple TrainedNetworks::encode(const Data& data) const {
  expect(data);
  const int n = data.set.size(), d = model_->latent();
  Matrix<double> mean(d, n), sd(d, n);
  {
    const nb::gil_scoped_release released;
    Team team(threads_);
    team.for_shares((n + chunk - 1) / chunk, [&](int begin, int end, int) {
      for (int at = begin * chunk; at < std::min(n, end * chunk); at += chunk) {
        const int last = std::min(n, at + chunk);
        model_->encode(data.set, range(at, last), mean.view().columns(at, last), sd.view().columns(at, last));
      }
    });
  }
  return nb::make_tuple(array_of(std::move(mean)), array_of(std::move(sd)));
}

nb::tuple TrainedNetworks::refine(const Data& data, int steps, std::uint64_t seed, Stop& stop, nb::object tell) const {
  expect(data);
  if (steps < 1) throw InputError("refine: expected at least 1 step");
  const int n = data.set.size(), d = model_->latent();
  Matrix<double> z(d, n);
  Watch watch(std::move(tell));
  std::atomic<int> done = 0;
  double acceptance = 0;
  {
    const nb::gil_scoped_release released;
    Team team(threads_);
    std::vector<double> accepted((n + chunk - 1) / chunk);
    team.for_shares(static_cast<int>(accepted.size()), [&](int begin, int end, int) {
      for (int k = begin; k < end; ++k) {
        if (stop.set) throw Stopped();
        const int at = k * chunk, last = std::min(n, at + chunk);
        const std::vector<int> indices = range(at, last);
        const PhiloxSource random(derived_seed(seed, static_cast<std::uint64_t>(k)));
        Matrix<double> mean(d, last - at), sd(d, last - at);
        model_->encode(data.set, indices, mean, sd);
        draw_normals(random, Purpose::draw, mean, sd, z.view().columns(at, last));
        accepted[k] = (last - at) * model_->refine(data.set, indices, steps, random, z.view().columns(at, last));
        watch.tick(done += last - at);
      }
    });
    acceptance = std::accumulate(accepted.begin(), accepted.end(), 0.0) / std::max(1, n);
  }
  return nb::make_tuple(array_of(std::move(z)), acceptance);
}

nb::object TrainedNetworks::decode(const Points& z) const {
  Matrix<double> x(model_->pixels(), static_cast<int>(z.shape(0)));
  if (z.shape(0) > 0) {
    const nb::gil_scoped_release released;
    model_->mean(view_of(z), x);
  }
  return array_of(std::move(x));
}

nb::object TrainedNetworks::outputs(const Points& z) const {
  Matrix<double> x(model_->pixels(), static_cast<int>(z.shape(0)));
  if (z.shape(0) > 0) {
    const nb::gil_scoped_release released;
    model_->outputs(view_of(z), x);
  }
  return array_of(std::move(x));
}

// Its random numbers are those of the seed: an engine of its own.
nb::object TrainedNetworks::simulate(int count, std::uint64_t seed) const {
  if (count < 1) throw InputError("n: expected at least 1");
  Matrix<double> x(model_->pixels(), count);
  {
    const nb::gil_scoped_release released;
    TrainConfig config = config_.train;
    config.seed = seed;
    config.batch = 1;
    config.baseline = LatentBaseline::none;
    const auto engine = make_engine(config_.engine, config, stand_in_, {.threads = threads_});
    engine->restore(state_);
    engine->simulate(count).data.expand(range(0, count), x.view());
  }
  return array_of(std::move(x));
}

// Control variates are of no use after training, and there may be as many of them as there were data.
Engine& TrainedNetworks::engine() {
  if (!engine_) {
    TrainConfig config = config_.train;
    config.batch = 1;
    config.baseline = LatentBaseline::none;
    engine_ = make_engine(config_.engine, config, stand_in_, {.threads = threads_});
    engine_->restore(state_);
  }
  return *engine_;
}

nb::dict TrainedNetworks::evaluate(const Data& data, int samples, Stop& stop, nb::object tell) {
  expect(data);
  Watch watch(std::move(tell));
  std::vector<PointEvaluation> points;
  {
    const nb::gil_scoped_release released;
    const std::lock_guard held(engine_in_use_);
    points = engine().evaluate(data.set, {.samples = samples}, [&](int done) {
      if (stop.set) throw Stopped();
      watch.tick(done);
    });
  }
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

nb::dict TrainedNetworks::anneal(const Data& data, int steps, int chains, Stop& stop, nb::object tell) {
  expect(data);
  Watch watch(std::move(tell));
  std::vector<AnnealedPoint> points;
  AnnealingConfig config;
  if (steps > 0) config.steps = steps;
  if (chains > 0) config.chains = chains;
  {
    const nb::gil_scoped_release released;
    const std::lock_guard held(engine_in_use_);
    points = engine().anneal(data.set, {config}, [&](int done) {
      if (stop.set) throw Stopped();
      watch.tick(done);
    });
  }
  std::vector<double> value;
  for (const AnnealedPoint& point : points) value.push_back(point.estimate.log_likelihood);
  nb::dict result;
  result["ais"] = array_of(std::move(value));
  return result;
}

nb::dict TrainedNetworks::parameters() const {
  nb::dict result;
  for (const NamedArray& array : state_.arrays)
    if (!array.name.starts_with("optimizer.") && !array.name.starts_with("baseline."))
      result[array.name.c_str()] = array_of_named(array);
  return result;
}

}  // namespace hone::python
