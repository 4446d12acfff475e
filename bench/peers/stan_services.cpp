// Stan's own algorithms on one model, as cmdstan runs them by default, on one thread.
//   <program> nuts|pathfinder|meanfield|fullrank|laplace DATA.json SEED
// Prints one JSON object: gradients (evaluations with autodiff types), values (with doubles), processor seconds, what
// the method says about itself, and mean and sd of every value. stan_peers.py compiles it with the model.
#include <tbb/global_control.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <stan/callbacks/structured_writer.hpp>
#include <stan/io/empty_var_context.hpp>
#include <stan/io/json/json_data.hpp>
#include <stan/model/model_base.hpp>
#include <stan/services/experimental/advi/fullrank.hpp>
#include <stan/services/experimental/advi/meanfield.hpp>
#include <stan/services/optimize/laplace_sample.hpp>
#include <stan/services/optimize/lbfgs.hpp>
#include <stan/services/pathfinder/multi.hpp>
#include <stan/services/sample/hmc_nuts_diag_e_adapt.hpp>

#include "stan_count.hpp"

stan::model::model_base& new_model(stan::io::var_context& data, unsigned int seed, std::ostream* messages);

namespace {

using stan::model::model_base;

// Keeps all rows.
class Rows : public stan::callbacks::writer {
 public:
  void operator()(const std::vector<std::string>& names) override { names_ = names; }
  void operator()(const std::vector<double>& row) override { rows_.push_back(row); }
  void operator()(const Eigen::Matrix<double, -1, -1>& columns) override {
    for (Eigen::Index i = 0; i < columns.cols(); ++i) (*this)(Eigen::VectorXd(columns.col(i)));
  }
  void operator()(const Eigen::Matrix<double, -1, 1>& row) override { rows_.emplace_back(row.begin(), row.end()); }
  void operator()(const Eigen::Matrix<double, 1, -1>& row) override { rows_.emplace_back(row.begin(), row.end()); }
  using writer::operator();
  bool is_valid() const noexcept override { return true; }

  std::vector<std::string> names_;
  std::vector<std::vector<double>> rows_;
};

// Keeps what a method says about itself.
class Claims : public stan::callbacks::logger {
 public:
  void info(const std::string& text) override { keep(text); }
  void info(const std::stringstream& text) override { keep(text.str()); }
  void warn(const std::string& text) override { keep(text); }
  void warn(const std::stringstream& text) override { keep(text.str()); }
  void error(const std::string& text) override { keep(text); }
  void error(const std::stringstream& text) override { keep(text.str()); }

  std::string text;

 private:
  void keep(const std::string& line) {
    for (const char* word :
         {"CONVERGED", "DIVERGING", "Pareto k", "Convergence detected", "terminated", "maximum number"})
      if (line.find(word) != std::string::npos) {
        // ADVI says it at the end of a line of numbers, others at the beginning.
        const std::size_t in_line =
            std::min(line.find("MEAN ELBO"), std::min(line.find("MEDIAN ELBO"), line.find("MAY BE")));
        const std::size_t from = in_line == std::string::npos ? line.find_first_not_of(" \n") : in_line;
        const std::string said = line.substr(from, line.find_first_of("\n", from) - from);
        if (text.find(said) == std::string::npos) text += (text.empty() ? "" : "; ") + said;
        return;
      }
  }
};

struct Run {
  model_base& model;
  unsigned int seed;
  Rows rows;
  Claims claims;
  stan::io::empty_var_context init;
  stan::callbacks::interrupt interrupt;
  stan::callbacks::writer nowhere;
};

double split_rhat(const std::vector<std::vector<double>>& halves) {
  const auto n = static_cast<double>(halves.front().size()), m = static_cast<double>(halves.size());
  double mean = 0, within = 0, between = 0;
  std::vector<double> means;
  for (const auto& half : halves) {
    double sum = 0, squares = 0;
    for (const double x : half) sum += x;
    for (const double x : half) squares += (x - sum / n) * (x - sum / n);
    means.push_back(sum / n), mean += sum / n / m, within += squares / (n - 1) / m;
  }
  for (const double x : means) between += (x - mean) * (x - mean) / (m - 1);
  return std::sqrt((n - 1) / n + between / within);
}

// Four chains of 1000 + 1000, one after another. Warm-up is saved to count its leapfrog steps, then dropped.
void nuts(Run& run) {
  constexpr std::size_t warmup = 1000, draws = 1000;
  std::vector<std::vector<double>> kept;
  int divergent = 0;
  for (unsigned int chain = 1; chain <= 4; ++chain) {
    Rows rows;
    stan::services::sample::hmc_nuts_diag_e_adapt(run.model, run.init, run.seed, chain, 2.0, warmup, draws, 1, true, 0,
                                                  1.0, 0.0, 10, 0.8, 0.05, 0.75, 10.0, 75, 50, 25, run.interrupt,
                                                  run.claims, run.nowhere, rows, run.nowhere);
    run.rows.names_ = rows.names_;
    for (std::size_t i = warmup; i < rows.rows_.size(); ++i) kept.push_back(rows.rows_[i]);
  }
  double worst = 1;
  for (std::size_t k = 0; k < run.rows.names_.size(); ++k) {
    if (run.rows.names_[k] == "divergent__")
      for (const auto& row : kept) divergent += row[k] > 0;
    const std::string& name = run.rows.names_[k];
    if (name.size() > 2 && name.substr(name.size() - 2) == "__" && name != "lp__") continue;
    std::vector<std::vector<double>> halves(8);
    for (std::size_t i = 0; i < kept.size(); ++i) halves[i / (draws / 2)].push_back(kept[i][k]);
    const double rhat = split_rhat(halves);
    if (!(rhat <= worst) && std::isfinite(rhat)) worst = rhat;
  }
  run.rows.rows_ = kept;
  std::ostringstream claim;
  claim << "R-hat " << std::round(worst * 1000) / 1000 << ", " << divergent << " divergences";
  run.claims.text = claim.str();
}

void pathfinder(Run& run) {
  constexpr int paths = 4;
  std::vector<stan::io::empty_var_context> inits(paths);
  std::vector<stan::callbacks::writer> init_writers(paths), single(paths);
  std::vector<stan::callbacks::structured_writer> diagnostics(paths);
  stan::callbacks::structured_writer diagnostic;
  std::vector<stan::io::empty_var_context*> init;
  for (auto& one : inits) init.push_back(&one);
  stan::services::pathfinder::pathfinder_lbfgs_multi(
      run.model, init, run.seed, 1, 2.0, 5, 0.001, 1e-12, 1e4, 1e-8, 1e7, 1e-8, 1000, 25, 1000, 1000, paths, false, 0,
      run.interrupt, run.claims, init_writers, single, diagnostics, run.rows, diagnostic);
  if (run.claims.text.empty()) run.claims.text = "no warning";
}

enum class Advi { meanfield, fullrank };
void advi(Run& run, Advi kind) {
  const auto method = kind == Advi::meanfield ? stan::services::experimental::advi::meanfield<model_base>
                                              : stan::services::experimental::advi::fullrank<model_base>;
  method(run.model, run.init, run.seed, 1, 2.0, 1, 100, 10000, 0.01, 1.0, true, 50, 100, 1000, run.interrupt,
         run.claims, run.nowhere, run.rows, run.nowhere);
  if (!run.rows.rows_.empty()) run.rows.rows_.erase(run.rows.rows_.begin());  // the mean of q
}

void laplace(Run& run) {
  Rows mode;
  stan::services::optimize::lbfgs<model_base, true>(run.model, run.init, run.seed, 1, 2.0, 5, 0.001, 1e-12, 1e4, 1e-8,
                                                    1e7, 1e-8, 2000, false, 0, run.interrupt, run.claims, run.nowhere,
                                                    mode);
  std::vector<std::string> names;
  run.model.constrained_param_names(names, false, false);
  const auto first = std::find(mode.names_.begin(), mode.names_.end(), names.front()) - mode.names_.begin();
  const std::vector<double>& row = mode.rows_.back();  // lp__ and the like, the parameters, what follows from them
  const Eigen::VectorXd constrained =
      Eigen::Map<const Eigen::VectorXd>(row.data() + first, static_cast<long>(names.size()));
  Eigen::VectorXd at(run.model.num_params_r());
  run.model.unconstrain_array(constrained, at, &std::cerr);
  stan::services::laplace_sample<true>(run.model, at, 1000, run.seed, 0, run.interrupt, run.claims, run.rows);
}

void print(const Run& run, double seconds) {
  std::cout.precision(10);
  std::cout << "{\"gradients\": " << peers::gradients << ", \"values\": " << peers::values
            << ", \"seconds\": " << seconds << ", \"claim\": \"" << run.claims.text
            << "\", \"draws\": " << run.rows.rows_.size() << ", \"parameters\": {";
  const auto n = static_cast<double>(run.rows.rows_.size());
  bool first = true;
  for (std::size_t k = 0; k < run.rows.names_.size(); ++k) {
    const std::string& name = run.rows.names_[k];
    if (name.size() > 2 && name.substr(name.size() - 2) == "__") continue;
    double mean = 0, squares = 0;
    for (const auto& row : run.rows.rows_) mean += row[k] / n;
    for (const auto& row : run.rows.rows_) squares += (row[k] - mean) * (row[k] - mean);
    std::cout << (first ? "" : ", ") << '"' << name << "\": [" << mean << ", " << std::sqrt(squares / (n - 1)) << "]";
    first = false;
  }
  std::cout << "}}\n";
}

}  // namespace

int main(int count, char** words) {
  const std::map<std::string, void (*)(Run&)> methods = {{"nuts", nuts},
                                                         {"pathfinder", pathfinder},
                                                         {"meanfield", [](Run& run) { advi(run, Advi::meanfield); }},
                                                         {"fullrank", [](Run& run) { advi(run, Advi::fullrank); }},
                                                         {"laplace", laplace}};
  if (count != 4 || !methods.count(words[1])) {
    std::cerr << "usage: " << words[0] << " nuts|pathfinder|meanfield|fullrank|laplace DATA.json SEED\n";
    return 2;
  }
  const tbb::global_control one_thread(tbb::global_control::max_allowed_parallelism, 1);
  std::ifstream file(words[2]);
  if (!file) {
    std::cerr << "cannot read '" << words[2] << "'\n";
    return 2;
  }
  try {
    stan::json::json_data data(file);
    const auto seed = static_cast<unsigned int>(std::stoul(words[3]));
    Run run{new_model(data, seed, &std::cerr), seed, {}, {}, {}, {}, {}};
    const std::clock_t begun = std::clock();
    methods.at(words[1])(run);
    print(run, static_cast<double>(std::clock() - begun) / CLOCKS_PER_SEC);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
