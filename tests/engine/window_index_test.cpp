// The indices by which the cuda engine's kernels find windows, against their definition and the cpu's convolutions.

#include "hone/engine/cuda/convolution/window_index.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

namespace hone::test {
namespace {

using cuda::WindowIndex;

const Windows shapes[] = {
    {.rows = 1, .cols = 1, .fine = 1, .coarse = 1},   {.rows = 2, .cols = 1, .fine = 3, .coarse = 5},
    {.rows = 1, .cols = 4, .fine = 2, .coarse = 4},   {.rows = 3, .cols = 5, .fine = 3, .coarse = 16},
    {.rows = 16, .cols = 16, .fine = 3, .coarse = 2}, {.rows = 6, .cols = 4, .fine = 8, .coarse = 3}};

// Number k = (ky · 4 + kx) · fine + channel of a window is at pixel (2 row − 1 + ky, 2 col − 1 + kx).
TEST(WindowIndex, PlacesAreThoseOfTheDefinition) {
  for (const Windows& w : shapes) {
    const WindowIndex index = WindowIndex::of(w);
    EXPECT_EQ(index.count(), w.count());
    EXPECT_EQ(index.depth(), w.depth());
    EXPECT_EQ(index.large(), w.large());
    EXPECT_EQ(index.small(), w.small());
    for (int row = 0; row < w.rows; ++row)
      for (int col = 0; col < w.cols; ++col)
        for (int ky = 0; ky < 4; ++ky)
          for (int kx = 0; kx < 4; ++kx)
            for (int channel = 0; channel < w.fine; ++channel) {
              const int y = 2 * row - 1 + ky, x = 2 * col - 1 + kx;
              const bool inside = y >= 0 && x >= 0 && y < 2 * w.rows && x < 2 * w.cols;
              EXPECT_EQ(index.place(row * w.cols + col, (ky * 4 + kx) * w.fine + channel),
                        inside ? (y * 2 * w.cols + x) * w.fine + channel : -1);
            }
  }
}

// All occurrences of a number, window by window, are those that a search finds, in the same order; and one of them is
// in the inner quarter.
TEST(WindowIndex, SharedNumbersAreThoseThatASearchFinds) {
  for (const Windows& w : shapes) {
    const WindowIndex index = WindowIndex::of(w);
    std::vector<std::vector<std::pair<int, int>>> expected(static_cast<std::size_t>(w.large()));
    std::vector<int> inner(expected.size());
    for (int window = 0; window < w.count(); ++window) {
      for (int k = 0; k < w.depth(); ++k)
        if (const int place = index.place(window, k); place >= 0) expected[place].emplace_back(window, k);
      for (int position = 0; position < 4; ++position)
        for (int channel = 0; channel < w.fine; ++channel) {
          const int place = index.place(window, index.inner(position, channel));
          ASSERT_GE(place, 0);
          EXPECT_EQ(place % w.fine, channel);
          ++inner[place];
        }
    }
    EXPECT_EQ(inner, std::vector<int>(inner.size(), 1));
    for (int number = 0; number < w.large(); ++number) {
      const WindowIndex::Shared shared = index.shared(number);
      std::vector<std::pair<int, int>> found;
      for (int i = 0; i < shared.down; ++i)
        for (int j = 0; j < shared.across; ++j) found.emplace_back(shared.window(i, j), shared.number(i, j));
      EXPECT_EQ(found, expected[number]) << "number " << number;
    }
  }
}

// What the kernels do with these indices is a convolution, and its transpose.
TEST(WindowIndex, MakesTheConvolutionsOfTheCpu) {
  const auto number = [](int i) { return std::sin(0.7 * i + 0.3); };
  for (const Windows& w : shapes)
    for (const Way way : {Way::down, Way::up}) {
      const WindowIndex index = WindowIndex::of(w);
      const bool down = way == Way::down;
      const int rows = down ? w.depth() : w.coarse, columns = down ? w.coarse : w.depth();
      std::vector<double> weights(static_cast<std::size_t>(w.depth() * w.coarse)), bias(down ? w.coarse : w.fine);
      for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = number(static_cast<int>(i));
      for (std::size_t i = 0; i < bias.size(); ++i) bias[i] = number(static_cast<int>(3 * i));
      ConvolutionLayer<double> layer(w, way, Directions::both);
      layer.pack(weights, bias);
      Batch<double> x(down ? w.large() : w.small(), 1), y(down ? w.small() : w.large(), 1);
      for (int i = 0; i < x.rows(); ++i) x(i, 0) = number(5 * i + 1);
      layer.forward(x, Activation::linear, y);
      std::vector<double> product(static_cast<std::size_t>(w.count() * columns));  // (windows, columns)
      for (int window = 0; window < w.count(); ++window)
        for (int k = 0; k < rows; ++k) {
          const int place = down ? index.place(window, k) : window * w.coarse + k;
          for (int n = 0; n < columns && place >= 0; ++n)
            product[static_cast<std::size_t>(window * columns + n)] +=
                x(place, 0) * weights[static_cast<std::size_t>(k * columns + n)];
        }
      for (int i = 0; i < y.rows(); ++i) {
        double sum = bias[static_cast<std::size_t>(i) % bias.size()];
        const WindowIndex::Shared shared = index.shared(down ? 0 : i);
        for (int a = 0; !down && a < shared.down; ++a)
          for (int b = 0; b < shared.across; ++b)
            sum += product[static_cast<std::size_t>(shared.window(a, b) * columns + shared.number(a, b))];
        if (down) sum += product[static_cast<std::size_t>(i)];
        EXPECT_NEAR(sum, y(i, 0), 1e-12);
      }
    }
}

// Sums over windows of one operand's numbers times the other's, where one operand has a row of ones: the gradient of
// the weights and, from that row, of the biases.
TEST(WindowIndex, MakesTheGradientsOfTheCpu) {
  const auto number = [](int i) { return std::sin(0.7 * i + 0.3); };
  for (const Windows& w : shapes)
    for (const Way way : {Way::down, Way::up}) {
      const WindowIndex index = WindowIndex::of(w);
      const bool down = way == Way::down;
      const int rows = down ? w.depth() : w.coarse, columns = down ? w.coarse : w.depth();
      const ConvolutionLayer<double> layer(w, way, Directions::both);
      Batch<double> x(down ? w.large() : w.small(), 1), dy(down ? w.small() : w.large(), 1);
      for (int i = 0; i < x.rows(); ++i) x(i, 0) = number(5 * i + 1);
      for (int i = 0; i < dy.rows(); ++i) dy(i, 0) = number(2 * i + 3);
      std::vector<double> weights(static_cast<std::size_t>(rows * columns)), bias(down ? w.coarse : w.fine);
      layer.sum_gradient(x, dy, 0, 1, weights, bias, SumsFrom::zero);
      const auto windows = [&](int window, int k) {
        const int place = index.place(window, k);
        return place < 0 ? 0 : (down ? x : dy)(place, 0);
      };
      const auto pixels = [&](int window, int k) { return (down ? dy : x)(window * w.coarse + k, 0); };
      const auto sum = [&](int row, int column) {  // row `rows` is that of ones
        double all = 0;
        for (int window = 0; window < w.count(); ++window)
          all += (row == rows ? 1
                  : down      ? windows(window, row)
                              : pixels(window, row)) *
                 (down ? pixels(window, column) : windows(window, column));
        return all;
      };
      for (int row = 0; row < rows; ++row)
        for (int column = 0; column < columns; ++column)
          EXPECT_NEAR(sum(row, column), weights[static_cast<std::size_t>(row * columns + column)], 1e-11);
      for (int channel = 0; channel < static_cast<int>(bias.size()); ++channel) {
        double all = down ? sum(rows, channel) : 0;
        for (int position = 0; !down && position < 4; ++position) all += sum(rows, index.inner(position, channel));
        EXPECT_NEAR(all, bias[static_cast<std::size_t>(channel)], 1e-11);
      }
    }
}

// Images that are worked on together: few enough, and at least one.
TEST(WindowIndex, KeepsABoundedNumberOfWindows) {
  EXPECT_EQ(WindowIndex({8, 8, 32, 64}).images_at_once(), 512);
  EXPECT_EQ(WindowIndex({1, 1, 1, 1}).images_at_once(), 1 << 20);
  EXPECT_EQ(WindowIndex({5000, 5000, 3, 4}).images_at_once(), 1);
}

}  // namespace
}  // namespace hone::test
