#include "hone/tensor/convolution.hpp"

#include <algorithm>
#include <cmath>

namespace hone {
namespace {

// Where row ky of window (row, col) lies on the large image: pixels [begin, end) of the window are inside, the first of
// them at `from`. None are if the row is outside.
struct WindowRow {
  int begin, end;
  std::size_t from;

  WindowRow(const Windows& w, int row, int col, int ky) {
    const int y = 2 * row - 1 + ky;
    begin = col == 0 ? 1 : 0;
    end = y < 0 || y >= 2 * w.rows ? begin : col + 1 == w.cols ? 3 : 4;
    from = static_cast<std::size_t>(y * 2 * w.cols + 2 * col - 1 + begin) * static_cast<std::size_t>(w.fine);
  }
  bool inside() const { return end > begin; }
};

// use(window's numbers, WindowRow, ky) for each row of each window
template <class Column, class Use>
void for_rows(const Windows& w, Column column, Use use) {
  for (int row = 0; row < w.rows; ++row)
    for (int col = 0; col < w.cols; ++col)
      for (int ky = 0; ky < 4; ++ky)
        use(column(row * w.cols + col) + static_cast<std::ptrdiff_t>(4) * ky * w.fine, WindowRow(w, row, col, ky));
}

template <class Real>
void gather(const Windows& w, const Real* image, BatchView<Real> out) {
  for_rows(
      w, [&](int window) { return out.column(window); },
      [&](Real* to, const WindowRow& at) {
        std::fill(to, to + at.begin * w.fine, Real(0));
        if (at.inside()) std::copy_n(image + at.from, (at.end - at.begin) * w.fine, to + at.begin * w.fine);
        std::fill(to + at.end * w.fine, to + 4 * w.fine, Real(0));
      });
}

// The transpose: sums what windows share.
template <class Real>
void scatter(const Windows& w, BatchView<const Real> windows, Real* image) {
  std::fill_n(image, w.large(), Real(0));
  for_rows(
      w, [&](int window) { return windows.column(window); },
      [&](const Real* from, const WindowRow& at) {
        if (!at.inside()) return;
        Real* const to = image + at.from;
        from += at.begin * w.fine;
        for (int i = 0; i < (at.end - at.begin) * w.fine; ++i) to[i] += from[i];
      });
}

template <class Real>
Real activated(Activation activation, Real a) {
  switch (activation) {
    case Activation::relu:
      return std::max(a, Real(0));
    case Activation::tanh:
      return std::tanh(a);
    case Activation::softplus:
      return std::max(a, Real(0)) + std::log1p(std::exp(-std::abs(a)));
    case Activation::linear:
      break;
  }
  return a;
}

// The derivative, of the activation's value.
template <class Real>
Real derivative(Activation activation, Real x) {
  switch (activation) {
    case Activation::relu:
      return x > 0 ? Real(1) : Real(0);
    case Activation::tanh:
      return 1 - x * x;
    case Activation::softplus:
      return -std::expm1(-x);
    case Activation::linear:
      break;
  }
  return 1;
}

// A small image as a batch with one pixel per column: in place if its channels fill whole vectors, otherwise a copy.
template <class Real>
BatchView<const Real> pixels_of(const Windows& w, const Real* image, Batch<Real>& copy) {
  if (w.coarse % 16 == 0) return {image, w.coarse, w.count()};
  copy.resize(w.coarse, w.count());
  for (int i = 0; i < w.count(); ++i)
    std::copy_n(image + static_cast<std::ptrdiff_t>(i) * w.coarse, w.coarse, copy.view().column(i));
  return copy;
}

// write(pixels) fills such a batch; its numbers end in the image.
template <class Real, class Write>
void write_pixels(const Windows& w, Real* image, Batch<Real>& copy, Write write) {
  if (w.coarse % 16 == 0) return write(BatchView<Real>(image, w.coarse, w.count()));
  copy.resize(w.coarse, w.count());
  write(copy.view());
  for (int i = 0; i < w.count(); ++i)
    std::copy_n(copy.view().column(i), w.coarse, image + static_cast<std::ptrdiff_t>(i) * w.coarse);
}

// What a thread needs while it works on one image.
template <class Real>
struct Scratch {
  Batch<Real> windows, first, second;
};
template <class Real>
Scratch<Real>& scratch_of(const Windows& w) {
  thread_local Scratch<Real> scratch;
  scratch.windows.resize(w.depth(), w.count());
  return scratch;
}

}  // namespace

template <class Real>
ConvolutionLayer<Real>::ConvolutionLayer(const Windows& windows, Way way, Directions directions)
    : windows_(windows),
      way_(way),
      layer_(way == Way::down ? windows.depth() : windows.coarse, way == Way::down ? windows.coarse : windows.depth(),
             directions),
      bias_(static_cast<std::size_t>(windows.fine)) {}

template <class Real>
void ConvolutionLayer<Real>::pack(std::span<const Real> weights, std::span<const Real> bias, int part, int parts) {
  layer_.pack(weights, way_ == Way::down ? bias : std::span<const Real>(), part, parts);
  if (way_ == Way::up && part == 0) std::copy(bias.begin(), bias.end(), bias_.begin());
}

template <class Real>
void ConvolutionLayer<Real>::forward(BatchView<const Real> x, Activation activation, BatchView<Real> y) const {
  const Windows& w = windows_;
  Scratch<Real>& scratch = scratch_of<Real>(w);
  for (int c = 0; c < x.cols(); ++c) {
    Real* const out = y.column(c);
    if (way_ == Way::down) {
      gather(w, x.column(c), scratch.windows.view());
      write_pixels(w, out, scratch.first,
                   [&](BatchView<Real> small) { layer_.forward(scratch.windows, activation, small); });
      continue;
    }
    layer_.forward(pixels_of(w, x.column(c), scratch.first), Activation::linear, scratch.windows);
    scatter<Real>(w, scratch.windows, out);
    for (int pixel = 0; pixel < 4 * w.count(); ++pixel)
      for (int k = 0; k < w.fine; ++k) {
        Real& a = out[static_cast<std::ptrdiff_t>(pixel) * w.fine + k];
        a = activated(activation, a + bias_[k]);
      }
  }
}

template <class Real>
void ConvolutionLayer<Real>::backward(BatchView<const Real> dy, Activation below, BatchView<const Real> x,
                                      BatchView<Real> dx) const {
  const Windows& w = windows_;
  Scratch<Real>& scratch = scratch_of<Real>(w);
  for (int c = 0; c < dy.cols(); ++c) {
    if (way_ == Way::up) {
      gather(w, dy.column(c), scratch.windows.view());
      const BatchView<const Real> value = pixels_of(w, x.column(c), scratch.second);
      write_pixels(w, dx.column(c), scratch.first,
                   [&](BatchView<Real> small) { layer_.backward(scratch.windows, below, value, small); });
      continue;
    }
    layer_.backward_input(pixels_of(w, dy.column(c), scratch.first), scratch.windows);
    scatter<Real>(w, scratch.windows, dx.column(c));
    for (int i = 0; i < w.large(); ++i) dx.column(c)[i] *= derivative(below, x.column(c)[i]);
  }
}

template <class Real>
void ConvolutionLayer<Real>::backward_input(BatchView<const Real> dy, BatchView<Real> dx) const {
  backward(dy, Activation::linear, dx, dx);
}

template <class Real>
void ConvolutionLayer<Real>::sum_gradient(BatchView<const Real> x, BatchView<const Real> dy, int part, int parts,
                                          std::span<Real> weights, std::span<Real> bias, SumsFrom from) const {
  const Windows& w = windows_;
  const bool down = way_ == Way::down;
  Scratch<Real>& scratch = scratch_of<Real>(w);
  const int rows = down ? w.depth() : w.coarse, channels = down ? w.coarse : w.fine;
  const int begin = share(rows, part, parts), end = share(rows, part + 1, parts);
  const int first = share(channels, part, parts), last = share(channels, part + 1, parts);
  if (!bias.empty() && from == SumsFrom::zero) std::fill(bias.begin() + first, bias.begin() + last, Real(0));
  if (x.cols() == 0)  // as the sums of no columns
    weight_gradient<Real>({nullptr, rows, 0}, {nullptr, down ? w.coarse : w.depth(), 0}, begin, end, weights,
                          simd_level(), from);
  for (int c = 0; c < x.cols(); ++c) {
    gather(w, down ? x.column(c) : dy.column(c), scratch.windows.view());
    const BatchView<const Real> small = pixels_of(w, down ? dy.column(c) : x.column(c), scratch.first);
    weight_gradient<Real>(down ? scratch.windows : small, down ? small : scratch.windows, begin, end, weights,
                          simd_level(), c == 0 ? from : SumsFrom::before);
    if (bias.empty()) continue;
    const int pixels = down ? w.count() : 4 * w.count();
    for (int pixel = 0; pixel < pixels; ++pixel)
      for (int k = first; k < last; ++k) bias[k] += dy.column(c)[static_cast<std::ptrdiff_t>(pixel) * channels + k];
  }
}

template class ConvolutionLayer<float>;
template class ConvolutionLayer<double>;

}  // namespace hone
