#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hone/engine/train_state.hpp"
#include "hone/latent/data_set.hpp"

namespace hone {

// What a run has counted so far, in addition to the engine's state.
struct RunCounters {
  TrainMetrics interval;                                   // since the last report
  TrainMetrics last;                                       // in the last complete report interval
  std::uint32_t reported = 0;                              // the iteration at the end of that interval
  std::int64_t rejected_nonfinite = 0, dropped_draws = 0;  // up to that iteration
};

// What using a model needs to know of its training data.
struct DataFacts {
  ImageShape shape;
  std::vector<double> mean;         // gaussian-mf, which subtracts it; empty for other models
  std::optional<double> threshold;  // where values were cut into bits; none if they were bits or stay numbers

  // One datum that stands for the training data where only these facts are used; `categories` as in ModelConfig.
  DataSet stand_in(int categories) const;
};

// Everything that a run depends on: a resumed run continues as if it had never stopped. Holds no times.
struct Checkpoint {
  std::map<std::string, std::string> identity;  // what defines the model: key → value
  TrainState state;
  RunCounters counters;
  std::optional<DataFacts> data = {};  // none in files of version 0.1.0
};

inline constexpr auto checkpoint_name = "checkpoint.safetensors";
inline constexpr auto best_checkpoint_name = "best.safetensors";  // the best by validation data
inline constexpr auto previous_checkpoint_name = "checkpoint.previous.safetensors";

std::vector<std::uint8_t> encode(const Checkpoint& checkpoint);
Checkpoint decode_checkpoint(std::span<const std::uint8_t> bytes, const std::string& origin);  // InputError

// Writes a checkpoint into a run folder and keeps the previous one. If it is interrupted at any moment, a complete
// checkpoint has the first name (on a file system without hard links: one of the two names).
// Throws Error, for instance if the disk is full; the old checkpoint then stays.
void write_checkpoint(const std::filesystem::path& folder, const Checkpoint& checkpoint);

struct FoundCheckpoint {
  std::filesystem::path path;
  Checkpoint checkpoint;
};

// A folder's newest good checkpoint, or none if it has no checkpoint at all. `say` is told about one that is skipped.
// Throws InputError, naming all, if there are checkpoints but none is good.
std::optional<FoundCheckpoint> find_checkpoint(const std::filesystem::path& folder,
                                               const std::function<void(const std::string&)>& say);

// Which of a run's models to use: the newest, or the best by validation data.
enum class WhichModel { newest, best };

// The checkpoint of a run's model. Throws InputError if there is none.
FoundCheckpoint checkpoint_of(const std::filesystem::path& folder, WhichModel which,
                              const std::function<void(const std::string&)>& say);

// Renames a damaged checkpoint. Otherwise the next one written would keep it in place of the good previous one.
void set_aside_damaged(const std::filesystem::path& folder);

// Throws KeyError, naming the first key that differs and both values, if `origin` stores another model.
void check_identity(const std::filesystem::path& origin, const std::map<std::string, std::string>& stored,
                    const std::map<std::string, std::string>& wanted);

}  // namespace hone
