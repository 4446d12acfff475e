#pragma once

// What follows a sum of products, vector by vector: activations, their derivatives, likelihoods. Included by
// kernel.hpp; the rules stated there hold here too.

#include "hone/tensor/product.hpp"

namespace hone::kernel {

// Rows [row, row + width) of columns [begin, end).
struct Range {
  int row, width, begin, end;
};

template <class S, class F>
typename S::V lane_by_lane(typename S::V x, F f) {
  typename S::Real lane[S::lanes];
  S::store(lane, x);
  for (int i = 0; i < S::lanes; ++i) lane[i] = f(lane[i]);
  return S::load(lane);
}

// exp(x), with x clamped to the range of normal floats.
template <class S>
inline typename S::V exp(typename S::V x) {
  using V = typename S::V;
  if constexpr (sizeof(typename S::Real) == 8) {
    return lane_by_lane<S>(x, [](double v) { return __builtin_exp(v); });
  } else {
    constexpr float log2_e = 1.44269504f;
    constexpr float to_integer = 12582912.0f;  // 1.5 · 2²³: adding it rounds to an integer, held in the last bits
    x = S::max(S::set(-87.0f), S::min(S::set(88.0f), x));
    const V shifted = S::fma(x, S::set(log2_e), S::set(to_integer));
    const V f = S::fma(x, S::set(log2_e), S::set(to_integer) - shifted);  // in [−½, ½]
    V power = S::set(0.00132764717f);                                     // 2^f, relative error 7.5e-8
    power = S::fma(power, f, S::set(0.00967554154f));
    power = S::fma(power, f, S::set(0.0555071328f));
    power = S::fma(power, f, S::set(0.240221197f));
    power = S::fma(power, f, S::set(0.693146967f));
    power = S::fma(power, f, S::set(1.00000007f));
    return S::add_to_exponent(power, shifted);
  }
}

// 2 artanh s for s in [0, ⅓]; floats, relative error 1.7e-7
template <class S>
inline typename S::V twice_artanh(typename S::V s) {
  using V = typename S::V;
  const V t = s * s;
  V series = S::set(0.3422605f);
  series = S::fma(series, t, S::set(0.395894618f));
  series = S::fma(series, t, S::set(0.666760028f));
  series = S::fma(series, t, S::set(1.99999967f));
  return s * series;
}

// log(1 + u) for u in [0, 1]
template <class S>
inline typename S::V log1p(typename S::V u) {
  if constexpr (sizeof(typename S::Real) == 8)
    return lane_by_lane<S>(u, [](double v) { return __builtin_log1p(v); });
  else
    return twice_artanh<S>(u * S::reciprocal(u + S::set(2.0f)));  // log(1 + u) = 2 artanh(u / (u + 2))
}

// log(1 + exp(−|a|)), of e = exp(−a): u is e or 1/e, and u / (u + 2) of the latter 1 / (1 + 2e)
template <class S>
inline typename S::V log1p_exp(typename S::V a, typename S::V e) {
  using V = typename S::V;
  if constexpr (sizeof(typename S::Real) == 8) {
    return log1p<S>(S::where_positive(a, e, S::reciprocal(e)));
  } else {
    const V below = S::where_positive(a, e + S::set(2), S::fma(S::set(2), e, S::set(1)));
    return twice_artanh<S>(S::where_positive(a, e, S::set(1)) * S::reciprocal(below));
  }
}

template <class S>
inline typename S::V log(typename S::V x) {
  if constexpr (sizeof(typename S::Real) == 8)
    return lane_by_lane<S>(x, [](double v) { return __builtin_log(v); });
  else
    return lane_by_lane<S>(x, [](float v) { return __builtin_logf(v); });
}

template <class S>
inline typename S::V sigmoid(typename S::V a) {
  return S::reciprocal(S::set(1) + exp<S>(-a));
}

template <class S>
inline typename S::V softplus(typename S::V a) {
  return S::max(S::set(0), a) + log1p<S>(exp<S>(S::min(a, -a)));
}

template <class S>
inline typename S::V tanh(typename S::V a) {
  if constexpr (sizeof(typename S::Real) == 8)
    return lane_by_lane<S>(a, [](double v) { return __builtin_tanh(v); });
  else
    return S::fma(S::set(2), sigmoid<S>(a + a), S::set(-1));
}

template <class S>
void copy_sums(const Product<typename S::Element>& product, const Range& range, const typename S::Real* sums) {
  for (int column = range.begin; column < range.end; ++column) {
    const auto* a = sums + (column - range.begin) * S::vectors * S::lanes;
    auto* to = product.sum + static_cast<std::size_t>(column) * product.y_stride + range.row;
    for (int i = 0; i < range.width; i += S::lanes) S::store(to + i, S::load(a + i));
  }
}

// y = f(a, row, column) on a range of sums
template <class S, class F>
void map(const Product<typename S::Element>& product, const Range& range, const typename S::Real* sums, F f) {
  for (int column = range.begin; column < range.end; ++column) {
    const auto* a = sums + (column - range.begin) * S::vectors * S::lanes;
    auto* y = product.y + static_cast<std::size_t>(column) * product.y_stride + range.row;
    for (int i = 0; i < range.width; i += S::lanes) S::store_elements(y + i, f(S::load(a + i), range.row + i, column));
  }
}

// y = a · act'(·), computed from h
template <class S, class Derivative>
void map_derivative(const Product<typename S::Element>& product, const Range& range, const typename S::Real* sums,
                    Derivative derivative) {
  map<S>(product, range, sums, [&](typename S::V a, int row, int column) {
    return derivative(a, S::load_elements(product.h + static_cast<std::size_t>(column) * product.y_stride + row));
  });
}

// A likelihood p(x | a) has a residual d log p / da, a log p, and something that both are computed from.
template <class S>
struct Bernoulli {
  using V = typename S::V;
  static V common(V a) { return exp<S>(-a); }
  static V residual(V, V x, V e) { return x - S::reciprocal(S::set(1) + e); }
  static V log_p(V a, V x, V e) { return S::fma(x, a, -(S::max(S::set(0), a) + log1p_exp<S>(a, e))); }
};

template <class S>
struct Gaussian {
  using V = typename S::V;
  using Real = typename S::Real;
  static V common(V a) { return a; }
  static V residual(V a, V x, V) { return (x - a) * S::set(static_cast<Real>(1 / gaussian_variance)); }
  static V log_p(V a, V x, V) {
    const V shift = x - a;
    return S::fma(shift * shift, S::set(static_cast<Real>(-0.5 / gaussian_variance)),
                  S::set(static_cast<Real>(gaussian_log_normalizer)));
  }
};

template <class S>
struct Poisson {
  using V = typename S::V;
  static V shift() { return S::set(static_cast<typename S::Real>(softplus_shift)); }
  static V common(V a) { return shift() + softplus<S>(a - shift()); }  // the rate
  static V residual(V a, V x, V rate) { return (x / rate - S::set(1)) * sigmoid<S>(a - shift()); }
  static V log_p(V, V x, V rate) { return S::fma(x, log<S>(rate), -rate); }
};

// Residuals, and sums of log p: floats over the rows of a panel, doubles over panels. Both are multiplied by what was
// observed, 0 or 1, if something is missing.
template <class S, class Likelihood, bool Value, bool Residual, bool Missing>
void likelihood_of(const Product<typename S::Element>& product, const Range& range, const typename S::Real* sums) {
  const int inside = product.units - range.row;
  for (int column = range.begin; column < range.end; ++column) {
    const auto* a = sums + (column - range.begin) * S::vectors * S::lanes;
    const auto* x = product.data + static_cast<std::size_t>(product.datum[column]) * product.data_stride + range.row;
    const auto* seen = Missing ? product.observed + (x - product.data) : nullptr;
    auto* y = Residual ? product.y + static_cast<std::size_t>(column) * product.y_stride + range.row : nullptr;
    auto total = S::set(0);
    for (int i = 0; i < range.width; i += S::lanes) {
      const auto natural = S::load(a + i);
      const auto datum = S::load(x + i);
      const auto common = Likelihood::common(natural);
      const auto counted = [&](auto term) {
        if constexpr (Missing)
          return term * S::load(seen + i);
        else
          return term;
      };
      if constexpr (Residual) S::store_elements(y + i, counted(Likelihood::residual(natural, datum, common)));
      if constexpr (Value) {
        const auto term = counted(Likelihood::log_p(natural, datum, common));
        total = total + (inside - i < S::lanes ? S::first(term, inside - i) : term);
      }
    }
    if constexpr (Value) product.value[column] += S::sum(total);
  }
}

template <class S, class Likelihood, bool Missing>
void wanted_of(const Product<typename S::Element>& product, const Range& range, const typename S::Real* sums) {
  if (!product.value)
    likelihood_of<S, Likelihood, false, true, Missing>(product, range, sums);
  else if (!product.y)
    likelihood_of<S, Likelihood, true, false, Missing>(product, range, sums);
  else
    likelihood_of<S, Likelihood, true, true, Missing>(product, range, sums);
}

template <class S, class Likelihood>
void likelihood(const Product<typename S::Element>& product, const Range& range, const typename S::Real* sums) {
  if (product.observed)
    wanted_of<S, Likelihood, true>(product, range, sums);
  else
    wanted_of<S, Likelihood, false>(product, range, sums);
}

template <class S>
[[gnu::always_inline]] inline void finish(const Product<typename S::Element>& product, const Range& range,
                                          const typename S::Real* sums) {
  using V = typename S::V;
  switch (product.finish) {
    case Finish::linear:
      return map<S>(product, range, sums, [](V a, int, int) { return a; });
    case Finish::sum:
      return copy_sums<S>(product, range, sums);
    case Finish::relu:
      return map<S>(product, range, sums, [](V a, int, int) { return S::max(S::set(0), a); });
    case Finish::tanh:
      return map<S>(product, range, sums, [](V a, int, int) { return tanh<S>(a); });
    case Finish::softplus:
      return map<S>(product, range, sums, [](V a, int, int) { return softplus<S>(a); });
    case Finish::derivative_relu:
      return map_derivative<S>(product, range, sums, [](V a, V h) { return S::where_positive(h, a, S::set(0)); });
    case Finish::derivative_tanh:
      return map_derivative<S>(product, range, sums, [](V a, V h) { return a * (S::set(1) - h * h); });
    case Finish::derivative_softplus:  // h = softplus(·), whose derivative is 1 − exp(−h)
      return map_derivative<S>(product, range, sums, [](V a, V h) { return a * (S::set(1) - exp<S>(-h)); });
    case Finish::bernoulli:
      return likelihood<S, Bernoulli<S>>(product, range, sums);
    case Finish::gaussian:
      return likelihood<S, Gaussian<S>>(product, range, sums);
    case Finish::poisson:
      return likelihood<S, Poisson<S>>(product, range, sums);
  }
}

}  // namespace hone::kernel
