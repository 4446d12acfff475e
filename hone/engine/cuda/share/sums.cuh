#pragma once

#include "hone/engine/cuda/share/shares.hpp"
#include "hone/engine/cuda/update/update.cuh"

namespace hone::cuda {

// The update in two halves, for ranks that share a minibatch: between them the sums go from rank to rank. The bits are
// those of the update in one kernel. A task's sums lie at task.sums: rows of a tile of weights, 64 columns each; of
// biases as many rows as an update adds them up in parts.

std::size_t floats_of_sums(const UpdateTask& task);

// What a rank adds its rows to.
enum class AddTo { zero, sums };

// The rows of `own` (Space::of_rows) are added to the sums of a block of tasks.
void launch_add_rows(const Space& own, const UpdateSpec& spec, const TaskBlock& block, AddTo to, cudaStream_t stream);
// What the objective learns of the whole minibatch (update/learn.cuh).
void launch_learn(const Space& space, const UpdateSpec& spec, cudaStream_t stream);
// The optimizer's step by sums over the whole minibatch, of a block of tasks.
void launch_move(const Space& space, const UpdateSpec& spec, const TaskBlock& block, cudaStream_t stream);

}  // namespace hone::cuda
