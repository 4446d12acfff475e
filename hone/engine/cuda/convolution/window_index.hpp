#pragma once

#include <algorithm>

#include "hone/base/clones.hpp"
#include "hone/tensor/convolution.hpp"

namespace hone::cuda {

// Where the numbers of images and of their windows lie, for kernels; `Windows` (hone/tensor) defines both. Integers
// alone, so that a test on the host sees what the device computes.
struct WindowIndex {
  int rows = 0, cols = 0, fine = 0, coarse = 0;  // as Windows

  static WindowIndex of(const Windows& w) { return {w.rows, w.cols, w.fine, w.coarse}; }

  HONE_INLINE int count() const { return rows * cols; }
  HONE_INLINE int depth() const { return 16 * fine; }
  HONE_INLINE int large() const { return 4 * count() * fine; }
  HONE_INLINE int small() const { return count() * coarse; }

  // Where number k of a window lies on the large image; −1: on its border of zeros.
  HONE_INLINE int place(int window, int k) const {
    const int position = k / fine, y = 2 * (window / cols) - 1 + position / 4,
              x = 2 * (window % cols) - 1 + position % 4;
    return y < 0 || x < 0 || y >= 2 * rows || x >= 2 * cols ? -1 : (y * 2 * cols + x) * fine + k % fine;
  }

  // The windows that have one number of the large image: `down` times `across` of them, 1 or 2 each way, as number
  // k(i, j) of window(i, j).
  struct Shared {
    int first, cols, k, fine, down, across;
    HONE_INLINE int window(int i, int j) const { return first + i * cols + j; }
    HONE_INLINE int number(int i, int j) const { return k - (8 * i + 2 * j) * fine; }
  };
  HONE_INLINE Shared shared(int number) const {
    const int pixel = number / fine, y = pixel / (2 * cols), x = pixel % (2 * cols);
    const int row = y > 0 ? (y - 1) / 2 : 0, col = x > 0 ? (x - 1) / 2 : 0;  // of the first window
    const int down = y > 0 && row + 1 < rows ? 2 : 1, across = x > 0 && col + 1 < cols ? 2 : 1;
    return {
        row * cols + col, cols, ((y + 1 - 2 * row) * 4 + x + 1 - 2 * col) * fine + number % fine, fine, down, across};
  }

  // Positions 0 … 3 of the inner quarter of a window, for one channel: there every number of the large image occurs in
  // one window.
  HONE_INLINE int inner(int position, int channel) const {
    return (4 * (1 + position / 2) + 1 + position % 2) * fine + channel;
  }

  // Images whose windows are held at a time: 64 MiB of numbers, or one image.
  int images_at_once() const {
    const double numbers = 1.0 * count() * std::max(depth(), coarse + 3);
    return std::max(1, static_cast<int>((1 << 24) / std::max(1.0, numbers)));
  }
};

}  // namespace hone::cuda
