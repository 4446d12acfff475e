#pragma once

// The matrix products, written once and compiled for every instruction level. A level is a class S that names its
// vectors and their few operations; it lives in an unnamed namespace, so that no function compiled for one level can be
// linked into another. For the same reason this header uses nothing of the standard library that is not a type.

#include "hone/tensor/finish.hpp"
#include "hone/tensor/product.hpp"

namespace hone::kernel {

template <class S>
inline constexpr int panel_rows = S::vectors* S::lanes;  // of a whole panel; panels follow one below the other

// The last panel is as narrow as whole vectors, and one half vector if the level has those, allow.
template <class S>
int panel_width(int rows_left) {
  if (rows_left >= panel_rows<S>) return panel_rows<S>;
  const int full = rows_left / S::lanes * S::lanes;
  const int rest = rows_left - full;
  return full + (rest == 0 ? 0 : S::half > 0 && rest <= S::half ? S::half : S::lanes);
}

// A few rows below the last whole vector are not worth a vector: each is multiplied along k instead.
template <class S>
int dot_rows(int rows) {
  const int rest = rows % S::lanes;
  return rest <= S::dots ? rest : 0;
}

template <class S>
int dot_length(int depth) {
  return (depth + S::lanes - 1) / S::lanes * S::lanes;
}

// Operands of a block of sums c (rows of a panel, N columns) = bias + Σ_k a_k b_kᵀ: vectors of a, single numbers of b.
// The sums of column n start from bias[n * bias_column …].
template <class S>
struct BlockOperands {
  using Element = typename S::Element;
  using Real = typename S::Real;
  int steps;  // of S::depth products each
  const Element* a;
  std::size_t a_step;
  const Element* b;
  std::size_t b_step;
  std::size_t b_column;
  const Real* bias;
  std::size_t bias_column = 0;
};

static constexpr int at_least_one(int size) { return size > 0 ? size : 1; }  // no array has size 0

// M whole vectors and H half ones, N columns, all in registers. Every sum runs over k in order, whatever M and N.
template <class S, int M, int H, int N>
void multiply_block(const BlockOperands<S>& operands, typename S::Real* c) {
  const auto [steps, a0, a_step, b0, b_step, b_column, bias0, bias_column] = operands;
  typename S::V sum[at_least_one(M)][N];
  typename S::HalfV half[N];
#pragma GCC unroll 16
  for (int n = 0; n < N; ++n) {
    const auto* bias = bias0 + static_cast<std::size_t>(n) * bias_column;
#pragma GCC unroll 16
    for (int m = 0; m < M; ++m) sum[m][n] = S::load(bias + m * S::lanes);
    if constexpr (H > 0) half[n] = S::load_half(bias + M * S::lanes);
  }
  const auto* a = a0;
  const auto* b = b0;
  for (int step = 0; step < steps; ++step, a += a_step, b += b_step) {
    typename S::Factors factor[at_least_one(M)];
#pragma GCC unroll 16
    for (int m = 0; m < M; ++m) factor[m] = S::factors(a + m * S::lanes * S::depth);
#pragma GCC unroll 16
    for (int n = 0; n < N; ++n) {
      const auto shared = S::broadcast(b + static_cast<std::size_t>(n) * b_column);
#pragma GCC unroll 16
      for (int m = 0; m < M; ++m) sum[m][n] = S::multiply_add(factor[m], shared, sum[m][n]);
      if constexpr (H > 0) half[n] = S::multiply_add_half(a + M * S::lanes * S::depth, shared, half[n]);
    }
  }
#pragma GCC unroll 16
  for (int n = 0; n < N; ++n) {
#pragma GCC unroll 16
    for (int m = 0; m < M; ++m) S::store(c + n * panel_rows<S> + m * S::lanes, sum[m][n]);
    if constexpr (H > 0) {
      S::store(c + n * panel_rows<S> + M * S::lanes, S::set(0));  // finite numbers beside the half vector
      S::store_half(c + n * panel_rows<S> + M * S::lanes, half[n]);
    }
  }
}

template <class S>
using MultiplyBlock = void (*)(const BlockOperands<S>&, typename S::Real*);

// Columns of a tile whose sums, with its vectors of weights and a broadcast, fit into registers. Tiles wider than
// S::columns gain nothing.
template <class S>
constexpr int tile_columns(int vectors) {
  const int columns = (S::registers - 1 - vectors) / vectors;
  return columns < S::columns ? columns : S::columns;
}

// multiply_block for every tile: by whole vectors, half vectors and columns.
template <class S>
struct Blocks {
  MultiplyBlock<S> of[S::vectors + 1][2][S::columns + 1] = {};
};

template <class S, int M, int H, int N = tile_columns<S>(M + H)>
constexpr void add_columns(Blocks<S>& blocks) {
  blocks.of[M][H][N] = multiply_block<S, M, H, N>;
  if constexpr (N > 1) add_columns<S, M, H, N - 1>(blocks);
}

template <class S, int M = S::vectors>
constexpr Blocks<S> make_blocks() {
  Blocks<S> blocks;
  if constexpr (M > 0) {
    blocks = make_blocks<S, M - 1>();
    add_columns<S, M, 0>(blocks);
  }
  if constexpr (S::half > 0 && M < S::vectors) add_columns<S, M, 1>(blocks);
  return blocks;
}

template <class S>
inline constexpr Blocks<S> blocks = make_blocks<S>();

template <class S>
MultiplyBlock<S> block(int width, int columns) {
  return blocks<S>.of[width / S::lanes][width % S::lanes > 0][columns];
}

// c[n * panel_rows] = bias + Σ_k a_k x_kn, of operands whose steps are K and whose a is one row. Sums run in vectors
// over k and across the vector at the end, whatever N.
template <class S, int N>
void multiply_dots(const BlockOperands<S>& operands, typename S::Real* c) {
  const auto* a = operands.a;
  const auto x = [&](int n, int k) {
    return S::load_elements(operands.b + static_cast<std::size_t>(n) * operands.b_column + k);
  };
  typename S::V sum[N];
  for (int n = 0; n < N; ++n) sum[n] = S::set(0);
  const int depth = operands.steps;
  const int whole = depth / S::lanes * S::lanes;
  for (int k = 0; k < whole; k += S::lanes) {
    const auto factor = S::load_elements(a + k);
#pragma GCC unroll 16
    for (int n = 0; n < N; ++n) sum[n] = S::fma(factor, x(n, k), sum[n]);
  }
  for (int n = 0; n < N; ++n) {
    if (whole < depth)  // anything may lie beyond x
      sum[n] = S::fma(S::load_elements(a + whole), S::first(x(n, whole), depth - whole), sum[n]);
    c[n * panel_rows<S>] = static_cast<typename S::Real>(static_cast<double>(*operands.bias) + S::sum(sum[n]));
  }
}

template <class S, int N = S::columns>
MultiplyBlock<S> dots(int columns) {
  if constexpr (N > 1)
    if (columns < N) return dots<S, N - 1>(columns);
  return multiply_dots<S, N>;
}

// Calls on_block(begin, end) on ranges of at most `most` that cover [begin, end). Their sizes differ by at most one.
template <class OnBlock>
void for_blocks(int begin, int end, int most, OnBlock on_block) {
  const int count = end - begin;
  const int blocks = count <= most ? 1 : (count + most - 1) / most;
  for (int left = blocks; left > 0 && begin < end; --left) {
    const int next = left == 1 ? end : begin + (end - begin + left - 1) / left;
    on_block(begin, next);
    begin = next;
  }
}

// Columns whose sums may wait in memory at once.
inline constexpr int waiting_columns = 64;

// How a panel is cut into tiles of up to `columns` columns, `tiles` of them one below the other. A tile of all vectors
// loads the fewest numbers per product. But a few columns too many for it are better taken at once, by tiles that share
// out the vectors, than in two blocks: weights that come from a slower cache are then read once. A tile needs ten sums
// or so to hide the latency of a product.
struct Cut {
  int tiles, columns;
};
template <class S>
Cut cut_panel(int vectors, int columns) {
  const int most = tile_columns<S>(vectors);
  if (columns <= most) return {1, most};
  for (int tiles = 2; vectors / tiles * columns >= 10; ++tiles)
    if (const int wide = tile_columns<S>((vectors + tiles - 1) / tiles); columns <= wide) return {tiles, wide};
  return {1, most};
}

// The rows [row, row + width) of a product.
template <class S>
struct Panel {
  const Product<typename S::Element>& product;
  const typename S::Element* weights;
  int row, width;

  int steps() const { return (product.depth + S::depth - 1) / S::depth; }
  std::size_t step_size() const { return static_cast<std::size_t>(width * S::depth); }
  // For columns from `begin` on and rows from row + from on, over the whole depth.
  BlockOperands<S> operands(int begin, int from = 0) const {
    return {.steps = steps(),
            .a = weights + from * S::depth,
            .a_step = step_size(),
            .b = product.x + static_cast<std::size_t>(begin) * product.x_stride,
            .b_step = S::depth,
            .b_column = product.x_stride,
            .bias = product.bias + row + from};
  }
  void finish_columns(int begin, int end, const typename S::Real* sums) const {
    finish<S>(product, {.row = row, .width = width, .begin = begin, .end = end}, sums);
  }
};

template <class S>
void multiply_whole(const Panel<S>& panel, const Cut& cut) {
  alignas(64) typename S::Real sums[S::columns * panel_rows<S>];
  const int vectors = (panel.width + S::lanes - 1) / S::lanes;
  for_blocks(0, panel.product.columns, cut.columns, [&](int begin, int end) {
    for (int tile = 0, from = 0; tile < cut.tiles; ++tile) {
      const int to = tile + 1 < cut.tiles ? vectors * (tile + 1) / cut.tiles * S::lanes : panel.width;
      block<S>(to - from, end - begin)(panel.operands(begin, from), sums + from);
      from = to;
    }
    panel.finish_columns(begin, end, sums);
  });
}

// The nearest cache does not hold the panel's weights: the sums of many columns run over a part of the depth and wait
// for the next part. Every sum still runs over k in order.
template <class S>
void multiply_in_parts(const Panel<S>& panel, int columns, int steps_at_once) {
  alignas(64) typename S::Real sums[waiting_columns * panel_rows<S>];
  for_blocks(0, panel.product.columns, waiting_columns, [&](int first, int last) {
    for_blocks(0, panel.steps(), steps_at_once, [&](int step, int next_step) {
      for_blocks(first, last, columns, [&](int begin, int end) {
        typename S::Real* const c = sums + (begin - first) * panel_rows<S>;
        BlockOperands<S> operands = panel.operands(begin);
        operands.steps = next_step - step;
        operands.a += static_cast<std::size_t>(step) * operands.a_step;
        operands.b += static_cast<std::size_t>(step) * operands.b_step;
        if (step > 0) {
          operands.bias = c;
          operands.bias_column = panel_rows<S>;
        }
        block<S>(panel.width, end - begin)(operands, c);
        if (next_step == panel.steps()) panel.finish_columns(begin, end, c);
      });
    });
  });
}

template <class S>
void multiply_panel(const Panel<S>& panel) {
  const Cut cut = cut_panel<S>((panel.width + S::lanes - 1) / S::lanes, panel.product.columns);
  const int near = panel.product.near_bytes / static_cast<int>(panel.step_size() * sizeof(typename S::Element));
  if (panel.product.columns <= cut.columns || near == 0 || panel.steps() <= near)
    multiply_whole(panel, cut);
  else
    multiply_in_parts(panel, cut.columns, near);  // tiles have all vectors then
}

// The last few rows of a product, multiplied along k.
template <class S>
void multiply_rows(const Product<typename S::Element>& product, const typename S::Element* weights, int row) {
  alignas(64) typename S::Real sums[S::columns * panel_rows<S>] = {};
  const auto a_step = static_cast<std::size_t>(dot_length<S>(product.depth));
  const int width = product.units - row;
  for_blocks(0, product.columns, S::columns, [&](int begin, int end) {
    for (int i = 0; i < width; ++i)
      dots<S>(end - begin)({.steps = product.depth,
                            .a = weights + static_cast<std::size_t>(i) * a_step,
                            .a_step = a_step,
                            .b = product.x + static_cast<std::size_t>(begin) * product.x_stride,
                            .b_step = 0,
                            .b_column = product.x_stride,
                            .bias = product.bias + row + i},
                           sums + i);
    finish<S>(product, {.row = row, .width = width, .begin = begin, .end = end}, sums);
  });
}

template <class S>
void multiply(const Product<typename S::Element>& product) {
  const auto steps = static_cast<std::size_t>((product.depth + S::depth - 1) / S::depth);
  const int panels_end = product.units - dot_rows<S>(product.units);
  const auto* weights = product.weights;
  for (int row = 0, width = 0; row < panels_end; row += width) {
    width = panel_width<S>(panels_end - row);
    multiply_panel<S>({product, weights, row, width});
    weights += static_cast<std::size_t>(width * S::depth) * steps;
  }
  if (panels_end < product.units) multiply_rows<S>(product, weights, panels_end);
}

template <class S>
void outer_product(const OuterProduct<typename S::Real>& product) {
  static constexpr typename S::Real zeros[panel_rows<S>] = {};
  alignas(64) typename S::Real sums[S::columns * panel_rows<S>] = {};
  for (int row = 0; row < product.units; row += panel_rows<S>) {
    const int left = product.units - row;
    const int width = panel_width<S>(left);
    const int inside = width < left ? width : left;
    for_blocks(product.begin, product.end, tile_columns<S>((width + S::lanes - 1) / S::lanes), [&](int begin, int end) {
      const auto to = [&](int input) {
        return product.gradient + static_cast<std::size_t>(input) * static_cast<std::size_t>(product.units) + row;
      };
      if (product.onto)
        for (int input = begin; input < end; ++input)
          for (int i = 0; i < inside; ++i) sums[(input - begin) * panel_rows<S> + i] = to(input)[i];
      block<S>(width, end - begin)({.steps = product.columns,
                                    .a = product.dy + row,
                                    .a_step = product.dy_stride,
                                    .b = product.x + begin,
                                    .b_step = product.x_stride,
                                    .b_column = 1,
                                    .bias = product.onto ? sums : zeros,
                                    .bias_column = product.onto ? std::size_t{panel_rows<S>} : 0},
                                   sums);
      for (int input = begin; input < end; ++input)
        for (int i = 0; i < inside; ++i) to(input)[i] = sums[(input - begin) * panel_rows<S> + i];
    });
  }
}

template <class S>
std::size_t packed_size(int units, int depth) {
  const int steps = (depth + S::depth - 1) / S::depth;
  const int panels_end = units - dot_rows<S>(units);
  int rows = 0;
  for (int row = 0; row < panels_end; row += panel_rows<S>) rows += panel_width<S>(panels_end - row);
  return static_cast<std::size_t>(rows) * static_cast<std::size_t>(steps * S::depth) +
         static_cast<std::size_t>(units - panels_end) * static_cast<std::size_t>(dot_length<S>(depth));
}

// S::depth numbers, from k on, of every row of a panel; zeros beyond the matrix.
template <class S>
void pack_step(const Packing<typename S::Element>& packing, int row, int width, int k, typename S::Element* packed) {
  const int left = packing.units - row;
  const int inside = k + S::depth > packing.depth ? 0 : left < width ? left : width;
  const auto unit = packing.unit_stride, next = packing.depth_stride;
  const auto* from = packing.from + static_cast<std::size_t>(row) * unit + static_cast<std::size_t>(k) * next;
  if (unit == 1) {
    for (int i = 0; i < inside; ++i)
      for (int d = 0; d < S::depth; ++d) packed[i * S::depth + d] = S::element(from[i + d * next]);
  } else {
    for (int i = 0; i < inside; ++i, from += unit)
      for (int d = 0; d < S::depth; ++d) packed[i * S::depth + d] = S::element(from[d]);
  }
  for (int i = inside; i < width; ++i)
    for (int d = 0; d < S::depth; ++d)
      packed[i * S::depth + d] =
          S::element(i < left && k + d < packing.depth ? from[(i - inside) * unit + d * next] : 0);
}

// Panel after panel, and step after step within a panel: S::depth numbers of every row. Then, row after row, the rows
// for dot products. Each part packs its share of the steps.
template <class S>
void pack(const Packing<typename S::Element>& packing, typename S::Element* packed) {
  const int steps = (packing.depth + S::depth - 1) / S::depth;
  const int panels_end = packing.units - dot_rows<S>(packing.units);
  const auto pack_steps = [&](int row, int width, int count) {
    for (int step = count * packing.part / packing.parts; step < count * (packing.part + 1) / packing.parts; ++step)
      pack_step<S>(packing, row, width, step * S::depth, packed + step * width * S::depth);
    packed += count * width * S::depth;
  };
  for (int row = 0; row < panels_end; row += panel_rows<S>) pack_steps(row, panel_width<S>(panels_end - row), steps);
  for (int row = panels_end; row < packing.units; ++row) pack_steps(row, 1, dot_length<S>(packing.depth) / S::depth);
}

// Just enough independent sums to hide the latency of the instruction.
inline constexpr int peak_sums = 12;

template <class S>
double fused_multiply_adds(long rounds) {
  typename S::V sum[peak_sums];
  for (int i = 0; i < peak_sums; ++i) sum[i] = S::set(static_cast<typename S::Real>(i));
  alignas(64) typename S::Element seed[S::lanes * S::depth];
  for (auto& x : seed) x = S::element(static_cast<typename S::Real>(rounds) * typename S::Real(1e-12));
  const auto factor = S::factors(seed);
  const auto shared = S::broadcast(seed);
  for (long round = 0; round < rounds; ++round) {
#pragma GCC unroll 16
    for (int i = 0; i < peak_sums; ++i) sum[i] = S::multiply_add(factor, shared, sum[i]);
  }
  double total = 0;
  for (int i = 0; i < peak_sums; ++i) total += S::sum(sum[i]);
  return total;
}

template <class S>
constexpr Kernels<typename S::Element> kernels() {
  void (*outer)(const OuterProduct<typename S::Real>&) = nullptr;
  if constexpr (S::depth == 1) outer = outer_product<S>;
  return {.packed_size = packed_size<S>,
          .pack = pack<S>,
          .multiply = multiply<S>,
          .outer_product = outer,
          .fused_multiply_adds = fused_multiply_adds<S>,
          .flops_per_round = 2.0 * S::lanes * S::depth * peak_sums};
}

}  // namespace hone::kernel
