// Are hone's verdicts right? Fits posteriors with known answers, several seeds each, and compares.
//   calibration --seeds 10 --jobs 16 --out calibration.csv --summary calibration.md
//   calibration --check                  every gradient against differences, and that every answer belongs to a value
//   calibration --reference              finds the answers that take long anew and writes references.csv
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <thread>

#include "bench/calibration/nuts.hpp"
#include "bench/calibration/run.hpp"
#include "hone/base/error.hpp"
#include "hone/base/file.hpp"
#include "hone/base/statistics.hpp"

namespace {

using namespace hone;
using namespace hone::calibration;

const std::string references = HONE_SOURCE_DIR "/bench/calibration/references.csv";

struct Options {
  int seeds = 10, jobs = 1;
  std::string out = "calibration.csv", summary;
  std::vector<std::string> only, except;  // parts of names
  Settings settings;
  bool check = false, reference = false, list = false;
};

bool chosen(const Case& one, const Options& options) {
  const auto within = [&](const std::string& part) { return one.name.find(part) != std::string::npos; };
  return (options.only.empty() || std::ranges::any_of(options.only, within)) &&
         std::ranges::none_of(options.except, within);
}

// Calls work(0) … work(count − 1) on `jobs` threads; the first exception ends it.
void in_parallel(std::size_t count, int jobs, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next = 0;
  std::exception_ptr failure;
  std::mutex guard;
  {
    std::vector<std::jthread> threads;
    for (int j = 0; j < jobs; ++j)
      threads.emplace_back([&] {
        for (std::size_t i; (i = next++) < count;) try {
            work(i);
          } catch (...) {
            const std::lock_guard lock(guard);
            if (!failure) failure = std::current_exception();
            next = count;
          }
      });
  }
  if (failure) std::rethrow_exception(failure);
}

// The largest error of a gradient entry at a point, relative to the gradient's size.
double gradient_error(const Posterior& posterior, std::vector<double> z) {
  const int d = posterior.dimension();
  std::vector<double> gradient(d), unused(d);
  double value = 0, worst = 0, size = 1;
  const auto at = [&](std::span<double> by) {
    posterior.evaluate({z.data(), d, 1}, Want::both, {&value, 1}, {by.data(), d, 1});
    return value;
  };
  if (!std::isfinite(at(gradient))) return std::nan("");
  for (const double g : gradient) size = std::max(size, std::abs(g));
  for (int i = 0; i < d; ++i) {
    const double h = 1e-4 * std::max(1e-2, std::abs(z[i])), middle = z[i];
    const auto moved = [&](double by) {
      z[i] = middle + by * h;
      return at(unused);
    };
    const double slope = (8 * (moved(1) - moved(-1)) - (moved(2) - moved(-2))) / (12 * h);
    z[i] = middle;
    worst = std::max(worst, std::abs(slope - gradient[i]) / size);
  }
  return worst;
}

// True if the case passes: gradients, and names of the answer.
bool check(const Case& one, const Truth& truth) {
  const auto posterior = one.make();
  Simulation simulation(99);
  double worst = 0;
  for (int point = 0; point < 5; ++point) {
    std::vector<double> z(posterior->dimension());
    for (double& x : z) x = simulation.normal();
    const double error = gradient_error(*posterior, z);
    if (!(error <= worst)) worst = error;
  }
  const std::set<std::string> names(posterior->names().begin(), posterior->names().end());
  const auto found = std::ranges::count_if(truth, [&](const Known& k) { return names.contains(k.name); });
  const bool passes = worst < 1e-5 && (found > 0 || !one.truth);
  fmt::print("{:<32}{:>6}{:>14.1e}{:>8}  {}\n", one.name, posterior->dimension(), worst, found,
             passes ? "ok" : "WRONG");
  return passes;
}

// Finds the kept answers of the posteriors chosen by --only; the file's other lines stay. True if all were found.
bool write_answers(const std::vector<Case>& cases, const Options& options) {
  std::vector<Truth> truths = kept_references(references, cases);
  std::atomic<bool> all = true;
  std::mutex guard;
  in_parallel(cases.size(), options.jobs, [&](std::size_t i) {
    if (cases[i].kept == Kept::no || !chosen(cases[i], options)) return;
    try {
      Truth truth = cases[i].truth();
      const std::lock_guard lock(guard);
      truths[i] = std::move(truth);
      write_references(references, cases, truths);
      fmt::print(stderr, "{}: {} values\n", cases[i].name, truths[i].size());
    } catch (const Error& error) {
      fmt::print(stderr, "{}: {}\n", cases[i].name, error.what());
      all = false;
    }
  });
  return all;
}

// The rows of an earlier run. A last line that was cut off is dropped.
std::vector<Row> earlier_rows(const std::string& path) {
  std::vector<Row> rows;
  if (!std::filesystem::exists(path)) return rows;
  std::string text = read_file(path);
  text.resize(text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1);
  std::istringstream in(text);
  int number = 0;
  for (std::string line; std::getline(in, line);)
    if (++number > 1) {
      rows.push_back(row_of(line, path, number));
    } else if (line != header()) {
      throw InputError(fmt::format("'{}' is not a file of this program: expected the header {}", path, header()));
    }
  return rows;
}

void run_all(const std::vector<Case>& cases, const std::vector<Truth>& truths, const Options& options) {
  std::vector<Row> rows = earlier_rows(options.out);
  std::set<std::pair<std::string, std::uint64_t>> done;
  for (const Row& r : rows) done.insert({r.posterior, r.seed});
  struct Job {
    std::size_t which;
    std::uint64_t seed;
    int dimension;
  };
  std::vector<Job> jobs;
  for (std::size_t i = 0; i < cases.size(); ++i)
    for (std::uint64_t seed = 1; seed <= static_cast<std::uint64_t>(options.seeds); ++seed)
      if (!done.contains({cases[i].name, seed})) jobs.push_back({i, seed, cases[i].make()->dimension()});
  std::ranges::stable_sort(jobs, std::greater{}, &Job::dimension);  // the longest first
  std::ofstream out(options.out, std::ios::trunc);
  out << header() << '\n';
  for (const Row& r : rows) out << line_of(r) << '\n';
  if (!out.flush()) throw InputError("cannot write '" + options.out + "'");
  std::mutex guard;
  in_parallel(jobs.size(), options.jobs, [&](std::size_t i) {
    const Job& job = jobs[i];
    const Row row = run(cases[job.which], truths[job.which], job.seed, options.settings);
    const std::lock_guard lock(guard);
    rows.push_back(row);
    out << line_of(row) << std::endl;
    fmt::print(stderr, "{:>5} of {}: {} {}, {}\n", rows.size() - done.size(), jobs.size(), row.posterior, row.seed,
               row.verdict);
  });
  std::ranges::sort(rows, {}, [](const Row& r) { return std::pair(r.posterior, r.seed); });
  const std::string text = summary_of(cases, rows);
  fmt::print("{}", text);
  if (options.summary.empty()) return;
  std::ofstream summary(options.summary);
  if (!(summary << text << std::flush)) throw InputError("cannot write '" + options.summary + "'");
}

int act(const Options& options) {
  std::vector<Case> cases = all_cases();
  if (options.reference) return write_answers(cases, options) ? 0 : 1;
  std::erase_if(cases, [&](const Case& one) { return !chosen(one, options); });
  if (cases.empty()) throw InputError("--only, --except: no posterior is left");
  const std::vector<Truth> truths = read_references(references, cases);
  if (options.check) {
    fmt::print("posterior                       dimension  gradient off  values\n");
    bool passes = true;
    for (std::size_t i = 0; i < cases.size(); ++i) passes = check(cases[i], truths[i]) && passes;
    return passes ? 0 : 1;
  }
  run_all(cases, truths, options);
  return 0;
}

}  // namespace

int main(int count, char** words) {
  Options options;
  CLI::App app("Are hone's verdicts right? Fits posteriors with known answers and compares.");
  app.add_option("--seeds", options.seeds, "seeds 1 to N per posterior")
      ->capture_default_str()
      ->check(CLI::Range(1, 100000));
  app.add_option("--jobs", options.jobs, "fits at the same time")->capture_default_str()->check(CLI::Range(1, 4096));
  app.add_option("--threads", options.settings.threads, "threads per fit")
      ->capture_default_str()
      ->check(CLI::Range(1, 4096));
  app.add_option("--out", options.out, "the CSV; runs that it has are not run again")->capture_default_str();
  app.add_option("--summary", options.summary, "also write the report, markdown, to this file");
  app.add_option("--only", options.only, "posteriors whose names contain one of these")->delimiter(',');
  app.add_option("--except", options.except, "not those whose names contain one of these")->delimiter(',');
  app.add_option("--gradients", options.settings.gradients, "budget per fit; the default is that of hone fit")
      ->check(CLI::PositiveNumber);
  app.add_flag("--check", options.check, "check every gradient against differences, and that answers have names");
  app.add_flag("--reference", options.reference, "find the answers that take long anew, and write references.csv");
  try {
    app.parse(count, words);
    return act(options);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const Error& error) {
    fmt::print(stderr, "calibration: {}\n", error.what());
    return dynamic_cast<const InputError*>(&error) ? 2 : 1;
  }
}
