#include "hone/latent/likelihoods.hpp"

#include <algorithm>
#include <cctype>

#include "hone/base/format.hpp"

namespace hone {
namespace {

std::string place_of(int datum, double value, int position) {
  return detail::format("datum {} has the value {} at position {} (both count from 0)", datum, value, position);
}

std::string words_of(const LikelihoodFacts& facts) {
  std::string name(facts.name);
  name[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(name[0])));
  return detail::format("a {} likelihood needs", name);
}

// The first group of a datum that does not have exactly one 1, in words; empty: none. Groups with a NaN do not count.
std::string bad_group(const LikelihoodShape& shape, int datum, std::span<const double> x) {
  for (int first = 0; first < shape.pixels; first += shape.categories) {
    int ones = 0;
    bool missing = false;
    for (int i = first; i < first + shape.categories; ++i) {
      ones += x[i] == 1;
      missing = missing || std::isnan(x[i]);
    }
    if (ones != 1 && !missing)
      return detail::format("datum {} has {} ones at the positions {} to {}", datum, ones, first,
                            first + shape.categories - 1);
  }
  return {};
}

// The first value of the data that is not allowed, in words; empty: none.
std::string first_fault(const LikelihoodFacts& facts, const LikelihoodShape& shape, Missing missing,
                        const DataSet& data, int first, bool (*allowed)(double)) {
  Matrix<double> column(data.dimension(), 1);
  for (int n = 0; n < data.size(); ++n) {
    data.expand(std::span<const int>(&n, 1), column.view());
    for (int i = 0; i < data.dimension(); ++i)
      if (!allowed(column(i, 0)) && !(missing == Missing::ignored && std::isnan(column(i, 0))))
        return place_of(first + n, column(i, 0), i);
    if (!facts.grouped) continue;
    if (const std::string fault = bad_group(shape, first + n, column.column(0)); !fault.empty()) return fault;
  }
  return {};
}

// What a Bernoulli likelihood needs, said where binarization cannot help.
constexpr std::string_view needs_bits =
    "binary data; divide the data so that all are from 0 to 1 and set binarization, or choose a likelihood for "
    "numbers (gaussian-learned) or counts (poisson)";

// Numbers from 0 to 1, or whole ones from 0 to 255. Missing values have no bits.
bool can_be_binarized(const DataSet& data, Missing missing) {
  if (missing == Missing::ignored) return false;
  bool levels = true, bytes = true;
  Matrix<double> column(data.dimension(), 1);
  for (int n = 0; n < data.size(); ++n) {
    data.expand(std::span<const int>(&n, 1), column.view());
    for (const double x : column.column(0)) {
      levels = levels && x >= 0 && x <= 1;
      bytes = bytes && x >= 0 && x <= 255 && x == std::floor(x);
    }
  }
  return levels || bytes;
}

}  // namespace

void likelihood_mean(Density density, const LikelihoodShape& shape, std::span<const double> a, std::span<double> out) {
  const MeanOf kind = facts_of(density).mean;
  for (int p = 0; p < shape.pixels; ++p) {
    if (kind == MeanOf::outputs) out[p] = a[p];
    if (kind == MeanOf::sigmoid) out[p] = sigmoid(a[p]);
    if (kind == MeanOf::positive) out[p] = modified_softplus(a[p]);
    if (kind == MeanOf::softmax)
      out[p] = std::exp(a[p] - Categorical::log_sum(shape, a.data() + p / shape.categories * shape.categories));
  }
}

void likelihood_draw(Density density, const LikelihoodShape& shape, std::span<const double> a,
                     std::span<const double> noise, std::span<double> x) {
  with_likelihood(density, [&](auto likelihood) {
    for (int item = 0; item < items_of(density, shape); ++item)
      likelihood.draw(shape, item, a.data(), noise[item], x.data());
  });
}

void check_data(Density density, const LikelihoodShape& shape, Missing missing, const DataSet& data, int first) {
  const LikelihoodFacts facts = facts_of(density);
  if (density == Density::bernoulli && data.binary()) return;
  std::string fault;
  with_likelihood(
      density, [&](auto likelihood) { fault = first_fault(facts, shape, missing, data, first, likelihood.allowed); });
  if (fault.empty() && (density != Density::bernoulli || missing == Missing::ignored)) return;
  const std::string needs(density == Density::bernoulli && !can_be_binarized(data, missing) ? needs_bits : facts.needs);
  throw DataError(detail::format("{} {}", words_of(facts), needs) + (fault.empty() ? "" : ": " + fault));
}

void check_scale(Density density, const DataSet& data, int first) {
  const LikelihoodFacts facts = facts_of(density);
  if (facts.bits) return;
  const double most = facts.counts ? 16777216 : 1e6;  // float32 tells whole numbers apart up to 2^24
  Matrix<double> column(data.dimension(), 1);
  for (int n = 0; n < data.size(); ++n) {
    data.expand(std::span<const int>(&n, 1), column.view());
    for (int i = 0; i < data.dimension(); ++i)
      if (std::abs(column(i, 0)) > most)
        throw DataError(
            detail::format("{} {}: {}{}", words_of(facts),
                           facts.counts ? "counts up to 16777216" : "numbers up to 1000000 in size, divide them",
                           place_of(first + n, column(i, 0), i),
                           facts.counts ? "; count in larger units, or divide the data and choose a likelihood for "
                                          "numbers (gaussian-learned)"
                                        : ""));
  }
}

}  // namespace hone
