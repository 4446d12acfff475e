// Replaces the cuda engine in a build without CUDA.
#include "hone/base/error.hpp"
#include "hone/engine/cuda/cuda_engine.hpp"

namespace hone {

// HONE_CUDA_MISSING: why, as CMake found it.
CudaSupport find_cuda() { return {.devices = {}, .missing = HONE_CUDA_MISSING}; }

std::unique_ptr<Engine> make_cuda_engine(const TrainConfig&, const DataSet&, const std::vector<std::uint64_t>&,
                                         Ranks*) {
  throw KeyError("engine", "cuda: " + find_cuda().missing);
}

}  // namespace hone
