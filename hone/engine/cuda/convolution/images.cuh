#pragma once

#include "hone/engine/cuda/convolution/window_index.hpp"
#include "hone/engine/cuda/product/product.cuh"

namespace hone::cuda {

// Kernels between images, (images, ld), and the matrices that products take: windows of the large image (images ·
// count, depth), pixels of the small one (images · count, ld ≥ coarse). `Beside` moves what is read by a, what is
// written by c.

// The numbers of layers, except halves.
__device__ __forceinline__ float number_of(float x) { return x; }
__device__ __forceinline__ float number_of(Tf32 x) { return x.value; }
template <class E>
__device__ __forceinline__ E number_as(float x) {
  if constexpr (std::is_same_v<E, Tf32>)
    return {to_tf32(x)};
  else
    return x;
}
template <class E>
struct alignas(16) Quad {
  E x[4];
};

// Where number k of row `row` of an image's matrix lies on the image; −1: nowhere, it is 0.
struct WindowPlace {
  WindowIndex windows;
  int width() const { return windows.depth(); }
  int channels() const { return windows.fine; }  // neighbours in both
  __device__ __forceinline__ int operator()(int row, int k) const { return windows.place(row, k); }
};
struct PixelPlace {
  int coarse;
  int width() const { return coarse; }
  int channels() const { return coarse; }
  __device__ __forceinline__ int operator()(int row, int k) const { return row * coarse + k; }
};

struct GatherShape {
  int images, count, width, channels, ld_images, ld;  // ld: of the rows, width rounded up to four
};
// Images → rows; what pads them becomes 0. A thread has four neighbours.
template <class From, class E, class Place>
__global__ void gather_rows(GatherShape s, Place place, const From* images, E* rows, Beside beside) {
  const Distances distances = beside.of(static_cast<int>(blockIdx.y));
  images = at(images, distances.a);
  rows = at(rows, distances.c);
  const int quads = s.ld / 4, index = static_cast<int>(blockIdx.x * blockDim.x) + this_thread();
  const int row = index / quads, k = 4 * (index % quads), image = row / s.count, window = row % s.count;
  if (image >= s.images) return;
  const From* from = images + static_cast<std::size_t>(image) * s.ld_images;
  Quad<E> quad;
  if (s.channels % 4 == 0) {  // all four lie side by side on the image
    const int first = place(window, k);
    const Quad<From> read = first < 0 ? Quad<From>{} : *reinterpret_cast<const Quad<From>*>(from + first);
#pragma unroll
    for (int i = 0; i < 4; ++i) quad.x[i] = number_as<E>(number_of(read.x[i]));
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int there = k + i < s.width ? place(window, k + i) : -1;
      quad.x[i] = number_as<E>(there < 0 ? 0.0f : number_of(from[there]));
    }
  }
  *reinterpret_cast<Quad<E>*>(rows + static_cast<std::size_t>(row) * s.ld + k) = quad;
}

// Number i of an image, from what a product made of its windows or pixels.
struct WindowSums {  // in the order of windows
  WindowIndex windows;
  __device__ __forceinline__ float operator()(const float* parts, int image, int i) const {
    const WindowIndex::Shared shared = windows.shared(i);
    const std::size_t row0 = static_cast<std::size_t>(image) * windows.count();
    float sum = 0;
    for (int a = 0; a < shared.down; ++a)
      for (int b = 0; b < shared.across; ++b)
        sum += parts[(row0 + shared.window(a, b)) * windows.depth() + shared.number(a, b)];
    return sum;
  }
};
struct PixelRows {
  int count, coarse, ld;
  __device__ __forceinline__ float operator()(const float* parts, int image, int i) const {
    return parts[(static_cast<std::size_t>(image) * count + i / coarse) * ld + i % coarse];
  }
};

struct FinishShape {
  int images, numbers, channels;  // numbers of an image
};
// What the epilogue of a dense layer does, for every number of an image: its bias is that of its channel.
template <class Source, Math math, class E, bool back>
__global__ void finish_images(FinishShape s, Source source, const float* parts, Layered<math, E, back> finish,
                              Beside beside) {
  const Distances distances = beside.of(static_cast<int>(blockIdx.y));
  parts = at(parts, distances.a);
  finish.shift(distances);
  const int index = static_cast<int>(blockIdx.x * blockDim.x) + this_thread();
  const int image = index / s.numbers, i = index % s.numbers;
  if (image >= s.images) return;
  const std::size_t place = static_cast<std::size_t>(image) * finish.ld + i;
  const float c = source(parts, image, i);
  using enum Activation;
  with_choice<false, relu, linear, tanh, softplus>(finish.activation, [&](auto choice) {
    float y;
    if constexpr (!back)
      y = activate<math>(choice, c + (finish.with ? finish.with[i % s.channels] : 0.0f));
    else if constexpr (choice == linear)
      y = c;
    else
      y = c * derivative<math>(choice, number_of(finish.with[place]));
    finish.y[place] = number_as<E>(y);
  });
}

}  // namespace hone::cuda
