#pragma once

#include "hone/engine/cuda/device/launch.cuh"
#include "hone/engine/cuda/device/math.cuh"

namespace hone::cuda {

// Floats from one product's numbers to the next one's: operands, C (and all that has its shape), biases, data.
struct Distances {
  std::size_t a = 0, b = 0, c = 0, bias = 0, data = 0;
};

// C (m, n) = A (m, k) B (n, k)ᵀ, neighbours of both along k. Rows in memory are multiples of 16 bytes, padded with 0.
// An epilogue takes every element of C from where it is computed.
template <class E>
struct Product {
  const E* a;
  const E* b;
  int lda, ldb;
  int m, n, k;

  __device__ void shift(const Distances& distances) {
    a = at(a, distances.a);
    b = at(b, distances.b);
  }
};

// Products of one shape side by side: networks of a run, and runs.
struct Beside {
  int nets = 1, runs = 1;
  Distances net, run;

  int count() const { return nets * runs; }
  __device__ Distances of(int index) const {
    const std::size_t n = index % nets, r = index / nets;
    return {.a = n * net.a + r * run.a,
            .b = n * net.b + r * run.b,
            .c = n * net.c + r * run.c,
            .bias = n * net.bias + r * run.bias,
            .data = n * net.data + r * run.data};
  }
};

inline constexpr int row_sum_columns = 32;  // of a row, in one sum of log p

// Compares a batch with data: row m belongs to datum m / rows_per_datum. Residuals are wanted, or sums of log p, or
// both; `alive` is for residuals alone.
struct Comparison {
  Density density = Density::bernoulli;
  const float* x = nullptr;  // (data, ldx)
  int ldx = 0;
  int rows_per_datum = 1;
  const int* alive = nullptr;  // null: all; else rows that are not have residuals of zero
  float* partial = nullptr;    // (parts, rows): sums of log p over 32 pixels; null: not wanted
  bool residuals = true;
  int categories = 0;  // of a categorical density

  static int parts(int pixels) { return ceil_div(pixels, row_sum_columns); }
};

// What a layer holds: floats, halves, or floats that are rounded to tf32 already.
struct Tf32 {
  float value;
};
template <class E>
inline constexpr bool are_halves = std::is_same_v<E, __half>;

// Two neighbours in memory; n is even, and rows are padded. `__ldg` promises that nobody writes these numbers
// meanwhile: else every load would wait for the store before it. With a pointer that may be null it faulted in spite of
// the check (CUDA 13.0), so such numbers are read plainly.
template <class E>
__device__ __forceinline__ float2 pair_at(const E* from, int n) {
  if constexpr (are_halves<E>)
    return __half22float2(__ldg(reinterpret_cast<const __half2*>(from + n)));
  else
    return __ldg(reinterpret_cast<const float2*>(from + n));
}
__device__ __forceinline__ void put_pair(float* to, int n, float x, float y) {
  *reinterpret_cast<float2*>(to + n) = make_float2(x, y);
}
__device__ __forceinline__ void put_pair(Tf32* to, int n, float x, float y) {
  *reinterpret_cast<float2*>(to + n) = make_float2(to_tf32(x), to_tf32(y));
}
__device__ __forceinline__ void put_pair(__half* to, int n, float x, float y) {
  *reinterpret_cast<unsigned*>(to + n) = packed(x, y);
}

// Epilogues take two neighbours of C at a time: epilogue(m, n, column(n), load(m, n), c, inside), n even; `inside` of
// the two exist. E is the type of what they write, and of a layer's values. `column` is called once per column,
// `load` perhaps long before the epilogue. Padding of rows stays 0. If an epilogue `sums_rows`, it returns what it adds
// to the sum of row_sum_columns neighbours (0 if not inside), and row_sum(m, part, sum) is called once. `chosen` calls
// f with an epilogue whose Choice the compiler knows: only those have elements.

// Forward act(c + bias); back c ⊙ act'(·) for values h = act(·).
template <Math math, class E, bool back, class Choice = Activation>
struct Layered {
  static constexpr bool sums_rows = false;
  E* y;
  const std::conditional_t<back, E, float>* with;  // h or biases; null: none
  int ld;
  Choice activation;  // linear where h is null

  __device__ void shift(const Distances& distances) {
    y = at(y, distances.c);
    if (with) with = at(with, back ? distances.c : distances.bias);
  }
  template <class F>
  __device__ __forceinline__ void chosen(F f) const {
    using enum Activation;  // halves serve ReLUs and Bernoullis only (`suits_halves`)
    with_choice<are_halves<E>, relu, linear, tanh, softplus>(activation, [&](auto choice) {
      f(Layered<math, E, back, decltype(choice)>{y, with, ld, choice});
    });
  }
  __device__ float2 column(int n) const {
    return !back && with ? *reinterpret_cast<const float2*>(with + n) : float2{0, 0};
  }
  __device__ __forceinline__ float2 load(int m, int n) const {
    if (!back || activation == Activation::linear) return {};
    return pair_at(with + static_cast<std::size_t>(m) * ld, n);
  }
  __device__ __forceinline__ void operator()(int m, int n, const float2& bias, const float2& h, const float2& c,
                                             int inside) const {
    E* const to = y + static_cast<std::size_t>(m) * ld;
    const auto finished = [&](float sum, float bias_here, float value) {
      return back ? sum * derivative<math>(activation, value) : activate<math>(activation, sum + bias_here);
    };
    const float first = finished(c.x, bias.x, h.x), second = finished(c.y, bias.y, h.y);
    if (inside > 0) put_pair(to, n, first, inside > 1 ? second : 0.0f);
  }
};
template <Math math, class E>
using Activated = Layered<math, E, false>;
template <Math math, class E>
using LayeredBack = Layered<math, E, true>;

struct Wanted {  // of a comparison
  bool residuals, sums, alive;
};
template <Math math, class E, class Choice = Density, Wanted wanted = Wanted{}>
struct Compared {
  static constexpr bool sums_rows = wanted.sums;
  Comparison data;
  E* y;  // residuals
  const float* bias;
  int ld, rows;

  __device__ void shift(const Distances& distances) {
    y = at(y, distances.c);
    if (bias) bias += distances.bias;
    data.x += distances.data;
    if (data.alive) data.alive += distances.data;
    if (data.partial) data.partial += distances.data;
  }
  template <class F>
  __device__ __forceinline__ void chosen(F f) const {
    using enum Density;
    with_choice<are_halves<E>, bernoulli, gaussian, poisson>(data.density, [&](auto choice) {
      const auto call = [&]<Wanted known>() { f(Compared<math, E, decltype(choice), known>{data, y, bias, ld, rows}); };
      if (data.alive) return call.template operator()<Wanted{true, false, true}>();
      if (!data.residuals) return call.template operator()<Wanted{false, true, false}>();
      data.partial ? call.template operator()<Wanted{true, true, false}>()
                   : call.template operator()<Wanted{true, false, false}>();
    });
  }
  struct Loaded {
    float2 x;
    bool alive;
  };
  __device__ float2 column(int n) const { return bias ? *reinterpret_cast<const float2*>(bias + n) : float2{0, 0}; }
  __device__ __forceinline__ Loaded load(int m, int n) const {
    const int datum = data.rows_per_datum == 1 ? m : m / data.rows_per_datum;  // a division takes long
    return {pair_at(data.x + static_cast<std::size_t>(datum) * data.ldx, n),
            !wanted.alive || __ldg(data.alive + m) != 0};
  }
  __device__ __forceinline__ float operator()(int m, int n, const float2& bias_here, const Loaded& loaded,
                                              const float2& c, int inside) const {
    E* const to = y + static_cast<std::size_t>(m) * ld;
    const float2 a = {c.x + bias_here.x, c.y + bias_here.y}, x = loaded.x;
    if constexpr (wanted.residuals) {
      const float first = residual<math>(Choice(), a.x, x.x), second = residual<math>(Choice(), a.y, x.y);
      if (inside > 0) put_pair(to, n, loaded.alive ? first : 0.0f, loaded.alive && inside > 1 ? second : 0.0f);
    }
    if (!wanted.sums) return 0;
    const float first = log_probability<math>(Choice(), a.x, x.x), second = log_probability<math>(Choice(), a.y, x.y);
    return inside > 1 ? first + second : inside > 0 ? first : 0.0f;
  }
  __device__ void row_sum(int m, int part, float sum) const {
    data.partial[static_cast<std::size_t>(part) * rows + m] = sum;
  }
};

}  // namespace hone::cuda
