#pragma once

#include <cstddef>

#include "hone/engine/cuda/convolution/window_index.hpp"
#include "hone/engine/cuda/device/memory.cuh"

namespace hone::cuda {

// Where windows, and pixels whose rows must be padded, lie between two kernels; of run 0's first network.
struct WindowScratch {
  float* numbers = nullptr;
  std::size_t pixels = 0, net = 0;  // floats to the pixels, and to the next network's

  // Makes room for one more layer: `pixels` and `net` are the most that any needs.
  void cover(const WindowIndex& w, std::size_t images) {
    const std::size_t rows = std::min<std::size_t>(images, w.images_at_once()) * w.count();
    pixels = std::max(pixels, rows * w.depth());
    spare_ = std::max(spare_, rows * round_up(w.coarse, 4));
    net = pixels + spare_;
  }

 private:
  std::size_t spare_ = 0;
};

}  // namespace hone::cuda
