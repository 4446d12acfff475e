#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hone/engine/engine.hpp"

namespace hone {

// What a run has counted so far, beside the engine's own state.
struct RunCounters {
  TrainMetrics interval;                                   // since the last report
  TrainMetrics last;                                       // of the last whole report interval
  std::uint32_t reported = 0;                              // the iteration at its end
  std::int64_t rejected_nonfinite = 0, dropped_draws = 0;  // up to there
};

// All that a run depends on: taken up again, it goes on as if it had never stopped. Holds no times.
struct Checkpoint {
  std::map<std::string, std::string> identity;  // what defines the model: key → value
  TrainState state;
  RunCounters counters;
};

inline constexpr auto checkpoint_name = "checkpoint.safetensors";
inline constexpr auto previous_checkpoint_name = "checkpoint.previous.safetensors";

std::vector<std::uint8_t> encode(const Checkpoint& checkpoint);
Checkpoint decode_checkpoint(std::span<const std::uint8_t> bytes, const std::string& origin);  // InputError

// Puts a checkpoint into a run folder and keeps the one before. Whenever it is interrupted, there is a whole one of the
// first name (on a file system without hard links: of one of the two names).
// Throws Error, for instance where the disk is full; the one that was there then stands.
void write_checkpoint(const std::filesystem::path& folder, const Checkpoint& checkpoint);

struct FoundCheckpoint {
  std::filesystem::path path;
  Checkpoint checkpoint;
};

// A folder's newest good checkpoint, or none where it has none at all. `say` hears of one that is passed over.
// InputError, naming all, where there are some and none is good.
std::optional<FoundCheckpoint> find_checkpoint(const std::filesystem::path& folder,
                                               const std::function<void(const std::string&)>& say);

// Takes a damaged checkpoint out of the way: writing the next would else keep it in place of the good previous one.
void set_aside_damaged(const std::filesystem::path& folder);

// KeyError, naming the first key that differs and both values, where what is stored in `origin` is of another model.
void check_identity(const std::filesystem::path& origin, const std::map<std::string, std::string>& stored,
                    const std::map<std::string, std::string>& wanted);

}  // namespace hone
