#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "hone/base/ranks.hpp"

namespace hone::cuda {

// How ranks share a minibatch, in numbers alone.

// The gradient is summed over this many rows at a time. A rank has whole steps, so that it continues the sums of the
// rank before it as one device would go on.
inline constexpr int rows_per_step = 8;

inline int steps_of(int batch) { return (batch + rows_per_step - 1) / rows_per_step; }

// The rows of this rank, perhaps none.
inline ItemRange rows_of(int batch, const Ranks& ranks) {
  const ItemRange steps = share_of(steps_of(batch), &ranks);
  return {std::min(batch, rows_per_step * steps.begin), std::min(batch, rows_per_step * steps.end)};
}

// Where the rows of all ranks begin, in bytes; one more for the end.
inline std::vector<std::size_t> row_bounds(int batch, std::size_t bytes_per_row, const Ranks& ranks) {
  std::vector<std::size_t> bounds = share_bounds(steps_of(batch), rows_per_step * bytes_per_row, ranks);
  for (std::size_t& bound : bounds) bound = std::min(bound, static_cast<std::size_t>(batch) * bytes_per_row);
  return bounds;
}

// Tasks [first, first + count) of an update, whose sums are the floats [begin, end): they go from rank to rank at once.
struct TaskBlock {
  int first, count;
  std::size_t begin, end;
};

// `floats`: of each task's sums, which follow each other. Every block but the last has `most` tasks.
inline std::vector<TaskBlock> task_blocks(std::span<const std::size_t> floats, int most) {
  std::vector<TaskBlock> blocks;
  std::size_t at = 0;
  const int tasks = static_cast<int>(floats.size());
  for (int first = 0; first < tasks; first += most) {
    TaskBlock block{.first = first, .count = std::min(most, tasks - first), .begin = at, .end = at};
    for (int i = 0; i < block.count; ++i) block.end += floats[static_cast<std::size_t>(first + i)];
    at = block.end;
    blocks.push_back(block);
  }
  return blocks;
}

}  // namespace hone::cuda
