// Replaces the cuda engine in a build without CUDA.
#include "hone/base/error.hpp"
#include "hone/engine/cuda/cuda_engine.hpp"
#include "hone/engine/engines.hpp"

namespace hone {

CudaSupport cuda_support() { return {.devices = {}, .missing = "hone was built without the CUDA toolkit"}; }

std::unique_ptr<Engine> make_cuda_engine(const TrainConfig&, const DataSet&, const std::vector<std::uint64_t>&,
                                         Ranks*) {
  throw KeyError("engine", "cuda: " + cuda_support().missing);
}

}  // namespace hone
