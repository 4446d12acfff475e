// The ways in which the cuda engine makes a refinement, head to head: µs per iteration and run (VCD, t = 8, L = 5, data
// of the paper's shape), median of five repeats.
//   cuda_kinds [PARTS [FILE]]   PARTS: 1, 2 or 12 (the default); FILE: takes the rows as JSON lines
// Each shape is timed in a process of its own, so that an error, also one of the device, ends no other row.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>

#include "app/data/synthetic.hpp"
#include "hone/engine/cuda/runs.cuh"

namespace hone {
namespace {

using cuda::PathKind, cuda::PathOptions, cuda::Runs;

constexpr int repeats = 5, data_count = 2000, pixels = 784;
constexpr double seconds_of_repeat = 0.03, seconds_in_all = 230;
constexpr unsigned seconds_of_row = 40;  // then it hangs

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Shape {
  int part;
  std::string name;
  TrainConfig config = TrainConfig::paper();
  int runs = 1;
};

struct Kind {
  std::string name;
  PathOptions path;
  std::string words;  // which Runs::path() has where the shape allows the kind
};

struct Row {
  Shape shape;
  Kind kind;
};

struct Times {
  double median = 0, least = 0, most = 0;  // µs
  std::string words;
  bool fits = true;
};

std::string join(const std::vector<int>& units) {
  std::string text;
  for (const int n : units) text += (text.empty() ? "" : ",") + std::to_string(n);
  return text;
}

TrainConfig paper(ModelKind model, int batch = 100, Precision precision = Precision::tf32) {
  TrainConfig config = TrainConfig::paper();
  const bool vae = model == ModelKind::vae;
  config.model.kind = model;
  config.model.latent = vae ? 10 : 50;
  if (!vae) config.model.hidden = {};
  config.refine = {8, Adapt::inside, 0.5 / config.model.latent, 0.9, -1};
  config.batch = batch;
  config.precision = precision;
  return config;
}

TrainConfig vae(std::vector<int> hidden, int batch = 100, Precision precision = Precision::tf32, int latent = 10) {
  TrainConfig config = paper(ModelKind::vae, batch, precision);
  config.model.hidden = std::move(hidden);
  config.model.latent = latent;
  config.refine.step_size = 0.5 / latent;
  return config;
}

Shape shape_of(int part, const TrainConfig& config, int runs = 1) {
  const ModelConfig& model = config.model;
  std::string name = model.kind == ModelKind::vae           ? "vae " + join(model.hidden)
                     : model.kind == ModelKind::logistic_mf ? "logistic-mf"
                     : model.kind == ModelKind::poisson_mf  ? "poisson-mf"
                                                            : "gaussian-mf";
  if (model.kind == ModelKind::vae && model.latent != 10) name += " latent " + std::to_string(model.latent);
  if (config.batch != 100) name += " batch " + std::to_string(config.batch);
  if (config.precision == Precision::float32) name += " float32";
  if (model.activation == Activation::tanh) name += " tanh";
  if (!config.objective->refines()) name += " kl";
  if (runs > 1) name += " x " + std::to_string(runs);
  return {part, name, config, runs};
}

Kind registers(int chains) {
  return {"registers " + std::to_string(chains), {PathKind::registers, chains}, "in registers"};
}
const Kind streamed = {"streamed", {PathKind::streamed}, "blocks alone"},
           products = {"products", {PathKind::products}, "per product"}, chosen = {"chosen", {}, ""};

// 1: weights in registers, streaming by, and products: several runs, and large batches
std::vector<Row> kind_rows() {
  std::vector<Row> rows;
  for (const ModelKind model : {ModelKind::vae, ModelKind::logistic_mf}) {
    std::vector<Shape> shapes;
    for (const int runs : {1, 3, 8, 32}) shapes.push_back(shape_of(1, paper(model), runs));
    for (const int batch : {200, 500, 1000}) shapes.push_back(shape_of(1, paper(model, batch)));
    for (const Shape& shape : shapes)
      for (const Kind& kind : {registers(8), registers(16), streamed, products, chosen}) rows.push_back({shape, kind});
  }
  return rows;
}

// 2: shapes that go by products
std::vector<Row> product_rows() {
  constexpr Precision fp32 = Precision::float32, tf32 = Precision::tf32;
  TrainConfig tanh = vae({200, 200});
  tanh.model.activation = Activation::tanh;
  std::vector<Row> rows;
  const auto add = [&](const TrainConfig& config, int runs = 1) {
    rows.push_back({shape_of(2, config, runs), products});
  };
  for (const std::vector<int>& hidden :
       {std::vector{400}, {250, 250}, {300, 200}, {500, 500}, {1000, 1000}, {4000, 4000}, {200, 200, 200}})
    add(vae(hidden));
  for (const std::vector<int>& hidden : {std::vector{400}, {100, 100}, {200, 200}, {1000, 1000}, {200, 200, 200}})
    add(vae(hidden, 100, fp32));
  add(vae({200, 200}, 200, fp32));
  add(vae({200, 200}, 100, tf32, 30));
  add(vae({300, 200}, 200));
  add(vae({500, 500}, 200));
  add(vae({500, 500}, 200, fp32));
  add(vae({500, 500}, 1000));
  add(tanh);
  add(paper(ModelKind::logistic_mf, 100, fp32));
  for (const int runs : {1, 8}) {
    add(paper(ModelKind::poisson_mf), runs);
    add(paper(ModelKind::gaussian_mf), runs);
  }
  add(vae({500, 500}), 4);
  add(vae({300, 200}), 8);
  return rows;
}

DataSet data_of(ModelKind model) {
  if (model != ModelKind::poisson_mf && model != ModelKind::gaussian_mf) return synthetic_data(1, 0, data_count);
  std::vector<double> values(static_cast<std::size_t>(data_count) * pixels);
  PhiloxSource(2).uniforms({Purpose::synthesize}, values);
  for (double& x : values)
    if (model == ModelKind::poisson_mf) x = std::floor(5 * x * x);
  return DataSet(std::move(values), {28, 28});
}

// `time(n)` makes n iterations of all runs and returns the seconds per iteration.
template <class F>
Times measured(F time, int graph, int runs) {
  time(graph);
  const double pace = time(graph);
  const double wanted = std::clamp(seconds_of_repeat / pace, 2.0, 512.0);
  const int each = graph * std::max(1, static_cast<int>(wanted / graph));
  std::vector<double> seconds(repeats);
  for (double& s : seconds) s = time(each);
  std::ranges::sort(seconds);
  const auto us = [&](double s) { return 1e6 * s / runs; };
  return {us(seconds[repeats / 2]), us(seconds.front()), us(seconds.back())};
}

Times time_training(const Row& row, const DataSet& data) {
  const Shape& shape = row.shape;
  std::vector<std::uint64_t> seeds(shape.runs);
  std::iota(seeds.begin(), seeds.end(), 1);
  Runs runs(shape.config, data, seeds, row.kind.path);
  Times result;
  if (runs.path().find(row.kind.words) == std::string::npos) {
    result.fits = false;
  } else {
    std::vector<TrainMetrics> ignored(shape.runs);
    const std::vector<int>& hidden = shape.config.model.hidden;
    const bool slow = runs.path().find(products.words) != std::string::npos ||  // or graphs of 32 iterations
                      (!hidden.empty() && hidden.front() >= 4000);
    result = measured(
        [&](int iterations) {
          const double begin = seconds_now();
          runs.train(static_cast<std::uint32_t>(iterations), ignored);
          return (seconds_now() - begin) / iterations;
        },
        slow ? 4 : 32, shape.runs);
  }
  result.words = runs.path();
  for (int run = 0; run < shape.runs && result.fits; ++run)
    if (!runs.failure(run).empty()) result.words += "; RUN " + std::to_string(run) + " FAILED: " + runs.failure(run);
  return result;
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text)
    if (c == '"' || c == '\\')
      result += {'\\', c};
    else
      result += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  return result + "\"";
}

void print_row(const Row& row, const Times& times, const std::string& problem, std::FILE* file) {
  const std::string note = !problem.empty() ? problem : times.fits ? "" : "does not fit";
  std::printf("%d  %-40s %-14s ", row.shape.part, row.shape.name.c_str(), row.kind.name.c_str());
  if (note.empty())
    std::printf("%9.1f  (%.1f to %.1f)%s\n", times.median, times.least, times.most,
                row.kind.name == "chosen" ? ("  " + times.words.substr(0, times.words.find(';'))).c_str() : "");
  else
    std::printf("%s\n", note.c_str());
  std::fflush(stdout);
  if (!file) return;
  std::fprintf(file, "{\"part\": %d, \"shape\": %s, \"runs\": %d, \"batch\": %d, \"kind\": %s, ", row.shape.part,
               quoted(row.shape.name).c_str(), row.shape.runs, row.shape.config.batch, quoted(row.kind.name).c_str());
  if (note.empty())
    std::fprintf(file, "\"us_per_iteration\": %.2f, \"least\": %.2f, \"most\": %.2f, ", times.median, times.least,
                 times.most);
  else
    std::fprintf(file, "\"us_per_iteration\": null, \"note\": %s, ", quoted(note).c_str());
  std::fprintf(file, "\"path\": %s}\n", quoted(times.words).c_str());
  std::fflush(file);
}

// Rows of one shape from `next` on, in a process of its own, which counts them up before each.
void time_shape(const std::vector<Row>& rows, int& next, std::FILE* file) {
  const Row& first = rows[next];
  const DataSet data = data_of(first.shape.config.model.kind);
  while (next < static_cast<int>(rows.size()) && rows[next].shape.name == first.shape.name) {
    const Row& row = rows[next++];
    alarm(seconds_of_row);
    try {
      print_row(row, time_training(row, data), "", file);
    } catch (const std::exception& error) {
      print_row(row, {}, std::string("failed: ") + error.what(), file);
      return;  // the device may be lost to this process
    }
  }
}

void time_all(const std::string& parts, std::FILE* file) {
  std::vector<Row> rows;
  for (const char part : parts) {
    const std::vector<Row> more = part == '1' ? kind_rows() : product_rows();
    rows.insert(rows.end(), more.begin(), more.end());
  }
  int& next = *static_cast<int*>(
      mmap(nullptr, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));  // of all processes
  const double begin = seconds_now();
  while (next < static_cast<int>(rows.size())) {
    if (seconds_now() - begin > seconds_in_all) {
      print_row(rows[next++], {}, "no time left", file);
      continue;
    }
    const int first = next;
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
      time_shape(rows, next, file);
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (next == first) ++next;  // not even begun
    if (status != 0) print_row(rows[next - 1], {}, "its process ended with status " + std::to_string(status), file);
  }
  std::printf("%.0f s in all\n", seconds_now() - begin);
}

}  // namespace
}  // namespace hone

int main(int argc, char** argv) {
  hone::time_all(argc > 1 ? argv[1] : "12", argc > 2 ? std::fopen(argv[2], "w") : nullptr);
}
