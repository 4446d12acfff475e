#pragma once

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/run/networks.hpp"
#include "app/run/progress.hpp"

// `hone encode`, `reconstruct`, `sample` and `score`: a trained model used on data. Data are read, and results written,
// a few blocks at a time, so neither need fit into memory (scores take 48 bytes per datum).
namespace hone {

struct UseOptions {
  std::filesystem::path run;  // the run folder
  WhichModel which = WhichModel::newest;
  std::string data = "test";  // a file, or train, validation or test: the run's own
  std::string binarization;   // of a file; empty: as in training
  std::string header;         // of a .csv file: auto, yes or no; empty: as in training
  std::optional<int> points;  // only the first of the data
  std::filesystem::path data_dir = {};
  std::filesystem::path out = {};  // .npy or .csv, for pictures also .png; empty: CSV on `otherwise`
  std::FILE* otherwise = stdout;
  std::uint64_t seed = 1;
  int threads = 1;
  const std::atomic<int>* stop = nullptr;  // not 0: throws Stopped; nothing is written
  std::function<void(const std::string&)> say = {};
  ProgressStyle progress = ProgressStyle::quiet;
};

struct EncodeOptions {
  int refine = 0;                 // steps of the kernel; 0: the means of q
  int draws = 1;                  // refined draws per datum
  std::filesystem::path sd = {};  // a file for the standard deviations of q; empty: none
};
// The means of q(z | x), or refined draws; returns how many data.
int encode_data(const UseOptions& options, const EncodeOptions& wanted);

// E[x | z] at the mean of q, or at a draw refined by `refine` steps; returns how many data.
int reconstruct_data(const UseOptions& options, int refine);

enum class Sampled { draws, means };  // x ~ p(x | z), or E[x | z]

struct SampleOptions {
  int count = 64;
  Sampled kind = Sampled::draws;
  std::filesystem::path z = {};                // points to use in place of draws from the prior; `count` is theirs
  std::optional<std::pair<int, int>> between;  // the line between the means of two data instead, counted from 0
};
int sample_model(const UseOptions& options, const SampleOptions& wanted);

enum class ScoreMethod { importance, annealing };

struct ScoreOptions {
  ScoreMethod method = ScoreMethod::importance;
  EvaluationConfig importance;
  AnnealingConfig annealing;
  bool sorted = false;  // the least likely datum first
  bool resume = false;  // continue a stopped command (unfinished_scores.hpp)
};

// The estimated log-likelihood of a datum.
struct Score {
  int datum = 0;
  double log_likelihood = 0;
  double error = 0;  // its standard error from the spread of weights, to first order
  double effective_samples = 0;
  std::optional<double> exact;
};
// All scores, in the order in which they were written.
std::vector<Score> score_data(const UseOptions& options, const ScoreOptions& wanted);

}  // namespace hone
