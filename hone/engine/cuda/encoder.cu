#include "hone/engine/cuda/encoder.cuh"

#include "hone/engine/cuda/trajectory.cuh"

namespace hone::cuda {
namespace {

using Split = EncoderSplit;

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
template <Math math>
__device__ EncoderBlock<math> this_block(const Space& space, const EncoderSpec& encoder, float* shared) {
  return {space,
          encoder,
          shared,
          static_cast<int>(blockIdx.x),
          static_cast<int>(blockIdx.y) * Split::rows,
          static_cast<int>(blockIdx.z)};
}
#endif

template <Math math>
__global__ void __launch_bounds__(threads, 2)
    encode(const __grid_constant__ Space space, const __grid_constant__ EncoderSpec encoder,
           const __grid_constant__ EncodeShape at) {
#if __CUDA_ARCH__ >= 900
  extern __shared__ __align__(16) float shared[];
  const auto block = this_block<math>(space, encoder, shared);
  block.set_up();
  wait_for_previous();
  block.encode(at, block.begin_encode(at), nullptr, [](auto) {});
#endif
}

template <Math math>
__global__ void __launch_bounds__(threads, 2)
    ascend_back(const __grid_constant__ Space space, const __grid_constant__ ObjectiveSpec objective,
                const __grid_constant__ EncoderSpec encoder, const __grid_constant__ AscendShape at) {
#if __CUDA_ARCH__ >= 900
  extern __shared__ __align__(16) float shared[];
  const auto block = this_block<math>(space, encoder, shared);
  block.set_up();
  wait_for_previous();
  block.begin_ascend(at);
  __syncthreads();  // where deltas will be is cleared
  block.template ascend<true>(
      at, objective, [&](int column) { return datum_of(space, objective, static_cast<int>(blockIdx.z), column); });
#endif
}

dim3 grid_of(const Space& space, int runs) {
  return {Split::blocks, static_cast<unsigned>(ceil_div(space.batch, Split::rows)), static_cast<unsigned>(runs)};
}

template <Math math>
void launch_encode_as(const Space& space, const EncoderSpec& encoder, int runs, cudaStream_t stream) {
  const EncodeShape shape(encoder.net, space.latent);
  const Launch launch(grid_of(space, runs), Split::blocks, threads, static_cast<int>(shape.bytes), stream);
  check(cudaLaunchKernelEx(&launch.config, encode<math>, space, encoder, shape), "starting the encoder");
}

template <Math math>
void launch_ascend_as(const Space& space, const ObjectiveSpec& objective, const EncoderSpec& encoder, int runs,
                      cudaStream_t stream) {
  const AscendShape shape(encoder.net, space.latent);
  const Launch launch(grid_of(space, runs), 1, threads, static_cast<int>(shape.bytes), stream);
  check(cudaLaunchKernelEx(&launch.config, ascend_back<math>, space, objective, encoder, shape),
        "the objective and the encoder");
}

// Whether a block of the kernel may have so much shared memory. All that there is is asked for: kernels are shared by
// runs of different shapes.
template <class Kernel>
bool allows(Kernel kernel, long long bytes, int most) {
  if (bytes > most) return false;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most), "asking for shared memory");
  return true;
}

template <Math math>
bool takes_layers_above(const Net& net, int latent, int most) {
  if (net.depth < 2 || net.depth > 3) return false;
  const long long bytes = EncodeShape(net, latent).bytes;
  return allows(encode<math>, bytes, most) && allows(ascend_back<math>, AscendShape(net, latent).bytes, most) &&
         resident_clusters(encode<math>, Split::blocks, threads, static_cast<int>(bytes)) > 0;
}

template <class Call>
auto by_math(Math math, Call call) {
  return math == Math::tf32 ? call.template operator()<Math::tf32>() : call.template operator()<Math::fp32>();
}

}  // namespace

bool takes_encoder(const Net& net, int latent, Math math) {
  const int most = cluster_shared_memory();
  return by_math(math, [&]<Math m>() { return takes_layers_above<m>(net, latent, most); });
}

void launch_encode(const Space& space, const EncoderSpec& encoder, Math math, int runs, cudaStream_t stream) {
  by_math(math, [&]<Math m>() { launch_encode_as<m>(space, encoder, runs, stream); });
}

void launch_ascend_back(const Space& space, const ObjectiveSpec& objective, const EncoderSpec& encoder, Math math,
                        int runs, cudaStream_t stream) {
  by_math(math, [&]<Math m>() { launch_ascend_as<m>(space, objective, encoder, runs, stream); });
}

}  // namespace hone::cuda
