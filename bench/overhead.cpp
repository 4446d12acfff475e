// What `hone fit` costs besides the model, on one thread: processor time per gradient that a whole fit with its checks
// spends outside log p and its gradient. The posterior is a correlated Gaussian, which takes a fraction of a
// microsecond.
//   bench_overhead [dimension …]
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <ctime>
#include <vector>

#include "hone/fit/checked_fit.hpp"
#include "hone/target/density.hpp"

namespace {

using namespace hone;

double processor_seconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// A stationary autoregression: correlations 0.9^|i − j|, scales from 0.1 to 10.
class Autoregression {
 public:
  explicit Autoregression(int dimension) {
    for (int i = 0; i < dimension; ++i) inverse_scale_.push_back(1 / (0.1 + 9.9 * i / dimension));
  }
  double operator()(std::span<const double> z, std::span<double> gradient) const {
    constexpr double rho = 0.9, precision = 1 / (1 - rho * rho);
    double before = z[0] * inverse_scale_[0], sum = before * before;
    gradient[0] = -before * inverse_scale_[0];
    for (std::size_t i = 1; i < z.size(); ++i) {
      const double now = z[i] * inverse_scale_[i], innovation = now - rho * before;
      sum += precision * innovation * innovation;
      gradient[i] = -precision * innovation * inverse_scale_[i];
      gradient[i - 1] += precision * rho * innovation * inverse_scale_[i - 1];
      before = now;
    }
    return -0.5 * sum;
  }

 private:
  std::vector<double> inverse_scale_;
};

// Seconds of one evaluation alone.
double seconds_of(const Autoregression& density, int dimension) {
  constexpr int calls = 200'000;
  std::vector<double> z(dimension, 0.1), gradient(dimension);
  double sum = 0;
  const double begun = processor_seconds();
  for (int i = 0; i < calls; ++i) {
    z[0] = 1e-6 * i;
    sum += density(z, gradient);
  }
  const double each = (processor_seconds() - begun) / calls;
  return std::isfinite(sum) ? each : 0;
}

void measure(int dimension) {
  std::vector<std::string> names;
  for (int i = 0; i < dimension; ++i) names.push_back(fmt::format("z{}", i + 1));
  const Autoregression model(dimension);
  const auto posterior = make_posterior(model, names);
  const double density = seconds_of(model, dimension), begun = processor_seconds();
  const CheckedFit fit = fit_and_check(*posterior, {});
  const double total = processor_seconds() - begun;
  const double each = 1e6 * (total / static_cast<double>(fit.gradients) - density);
  fmt::print("{:>9}{:>12}{:>12.2f}{:>15.2f}{:>13.0f} %{:>13.0f} %{:>12}\n", dimension, fit.gradients, 1e6 * density,
             each, 100 * each / 5, 100 * each / 20, name_of(fit.judgement.verdict));
}

}  // namespace

int main(int argc, char** argv) {
  fmt::print("dimension   gradients  density µs   beside it µs  of 5 µs        of 20 µs\n");
  std::vector<int> dimensions;
  for (int i = 1; i < argc; ++i) dimensions.push_back(std::atoi(argv[i]));
  if (dimensions.empty()) dimensions = {10, 30, 100, 200};
  for (const int d : dimensions) measure(d);
}
