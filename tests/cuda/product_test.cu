// Products of every tile and every kind of number, of sizes that no tile divides, against double.

#include "hone/engine/cuda/product/product_choice.cuh"
#include "tests/cuda/support.cuh"

namespace hone::test {
namespace {

using namespace cuda;

template <class E>
E number_of(double x);
template <>
__half number_of(double x) {
  return __float2half_rn(static_cast<float>(x));
}
template <>
float number_of(double x) {
  return static_cast<float>(x);
}
template <>
Tf32 number_of(double x) {
  return {__half2float(__float2half_rn(static_cast<float>(x)))};  // fewer bits of exponent, as many of mantissa
}
double value_of(__half x) { return static_cast<double>(__half2float(x)); }
double value_of(float x) { return static_cast<double>(x); }
double value_of(Tf32 x) { return static_cast<double>(x.value); }

template <class E>
struct Rows {
  int rows, k, ld;
  std::vector<E> numbers;

  Rows(int rows_, int k_, std::uint32_t stream)
      : rows(rows_),
        k(k_),
        ld(round_up(k_, 16 / static_cast<int>(sizeof(E)))),
        numbers(static_cast<std::size_t>(rows) * ld) {
    std::vector<double> normals(static_cast<std::size_t>(rows) * k);
    PhiloxSource(3).normals({Purpose::synthesize, stream}, normals);
    for (int r = 0; r < rows; ++r)
      for (int i = 0; i < k; ++i)
        numbers[static_cast<std::size_t>(r) * ld + i] = number_of<E>(normals[static_cast<std::size_t>(r) * k + i]);
  }
  std::size_t floats() const { return numbers.size() * sizeof(E) / sizeof(float); }
  double at(int row, int i) const { return value_of(numbers[static_cast<std::size_t>(row) * ld + i]); }
};

class CudaProduct : public CudaTest {
 protected:
  template <class T, class E, Math math, class Epilogue>
  static void launch(const cuda::Product<E>& p, const Beside& beside, const Epilogue& epilogue) {
    if constexpr (std::is_same_v<T, NarrowTile>)
      launch_narrow<E, math>(p, beside, epilogue, nullptr);
    else
      launch_tiles<T, E, math>(p, beside, epilogue, nullptr);
    check(cudaDeviceSynchronize(), "multiplying");
  }

  // C = A Bᵀ + b of two runs of two networks side by side, whose rows end with padding that stays 0
  template <class T, class E, Math math>
  static std::vector<float> compare(int m, int n, int k, double tolerance) {
    SCOPED_TRACE(std::to_string(T::m) + " x " + std::to_string(T::n) + ", k " + std::to_string(k));
    const Rows<E> a(m, k, 1), b(n, k, 2);
    const Rows<float> bias(1, n, 3);
    const std::size_t part_a = a.floats(), part_b = b.floats();
    const auto four = [&](const Rows<E>& rows) {
      Memory<float> memory(4 * rows.floats());
      for (int i = 0; i < 4; ++i)
        copy_to(reinterpret_cast<E*>(memory.data() + i * rows.floats()), rows.numbers, "copying an operand");
      return memory;
    };
    const Memory<float> all_a = four(a), all_b = four(b);
    const Memory<float> biases{std::span<const float>(bias.numbers)};
    const int ld = round_up(n, 4) + 4;
    const std::size_t size = static_cast<std::size_t>(m) * ld;
    Memory<float> c(4 * size);
    const cuda::Product<E> p{
        reinterpret_cast<const E*>(all_a.data()), reinterpret_cast<const E*>(all_b.data()), a.ld, b.ld, m, n, k};
    const Beside beside{2, 2, {part_a, 2 * part_b, 2 * size}, {2 * part_a, part_b, size}};
    launch<T, E, math>(p, beside, Activated<math, float>{c.data(), biases.data(), ld, Activation::linear});
    const std::vector<float> made = c.download();
    double worst = 0;
    for (std::size_t r = 0; r < 4; ++r)
      for (int i = 0; i < m; ++i)
        for (int j = 0; j < ld; ++j) {
          double sum = 0, scale = 1;
          for (int l = 0; l < k && j < n; ++l) {
            sum += a.at(i, l) * b.at(j, l);
            scale += std::abs(a.at(i, l) * b.at(j, l));
          }
          if (j < n) sum += static_cast<double>(bias.numbers[j]);
          const double found = static_cast<double>(made[r * size + static_cast<std::size_t>(i) * ld + j]);
          if (j >= n)
            EXPECT_EQ(found, 0) << "padding";
          else
            worst = std::max(worst, std::abs(found - sum) / scale);
        }
    EXPECT_LT(worst, tolerance);
    return made;
  }

  // residuals, and sums of log p, of a product that is compared with data
  template <class T, class E, Math math>
  static std::vector<float> compared(int m, int n, int k) {
    const Rows<E> a(m, k, 1), b(n, k, 2);
    const Rows<float> x(m, n, 3), bias(1, n, 4);
    const Memory<E> all_a{std::span<const E>(a.numbers)}, all_b{std::span<const E>(b.numbers)};
    const Memory<float> data{std::span<const float>(x.numbers)}, biases{std::span<const float>(bias.numbers)};
    const std::size_t size = static_cast<std::size_t>(m) * x.ld;
    Memory<float> made(size + static_cast<std::size_t>(m) * Comparison::parts(n));
    const Comparison comparison{Density::bernoulli, data.data(), x.ld, 1, nullptr, made.data() + size, true};
    launch<T, E, math>({all_a.data(), all_b.data(), a.ld, b.ld, m, n, k}, {},
                       Compared<math, float>{comparison, made.data(), biases.data(), x.ld, m});
    return made.download();
  }

  template <class T, class E, Math math>
  static void expect_bits(const std::array<int, 3>& size, double tolerance, const std::vector<float>& product,
                          const std::vector<float>& residuals) {
    const auto& [m, n, k] = size;
    EXPECT_EQ(product, (compare<T, E, math>(m, n, k, tolerance)));
    EXPECT_EQ(residuals, (compared<T, E, math>(m, n, k)));
  }

  template <class E, Math math>
  static void compare_tiles(double tolerance) {
    for (const auto& size : {std::array{203, 77, 91}, std::array{1, 130, 7}, std::array{129, 1, 300}}) {
      const auto& [m, n, k] = size;
      const std::vector<float> product = compare<LargeTile, E, math>(m, n, k, tolerance);
      const std::vector<float> residuals = compared<LargeTile, E, math>(m, n, k);
      expect_bits<TallTile, E, math>(size, tolerance, product, residuals);  // bits do not depend on the tile
      expect_bits<MediumTile, E, math>(size, tolerance, product, residuals);
      expect_bits<LittleTile, E, math>(size, tolerance, product, residuals);
    }
    // few columns: k's order is another one, and no other row matters
    for (const auto& [m, n, k] : {std::array{203, 13, 91}, std::array{129, 1, 1300}, std::array{37, 16, 4}}) {
      const std::vector<float> many = compare<NarrowTile, E, math>(m, n, k, tolerance);
      const std::vector<float> few = compare<NarrowTile, E, math>(21, n, k, tolerance);
      const std::size_t ld = few.size() / (4 * 21), first = 20 * ld;  // the last row of those
      EXPECT_TRUE(std::ranges::equal(std::span(few).subspan(first, ld), std::span(many).subspan(first, ld)));
      const std::vector<float> narrow = compared<NarrowTile, E, math>(m, n, k),
                               large = compared<LargeTile, E, math>(m, n, k);
      for (std::size_t i = 0; i < narrow.size(); ++i)
        EXPECT_NEAR(narrow[i], large[i], 10 * std::sqrt(k) * tolerance * (1 + std::abs(large[i])));
    }
  }
};

// Operands are numbers of the kind, so that only sums are rounded, to float32; the tensor cores cut off what they add.
TEST_F(CudaProduct, OfHalves) { compare_tiles<__half, Math::tf32>(3e-6); }
TEST_F(CudaProduct, OfRoundedFloats) { compare_tiles<Tf32, Math::tf32>(3e-6); }
TEST_F(CudaProduct, OfFloatsInTf32) { compare_tiles<float, Math::tf32>(1e-3); }
TEST_F(CudaProduct, OfFloats) { compare_tiles<float, Math::fp32>(3e-6); }

}  // namespace
}  // namespace hone::test
