#include "app/run/latent_plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <span>

#include "app/run/json.hpp"
#include "hone/engine/frozen.hpp"
#include "hone/tensor/symmetric_eigen.hpp"

namespace hone {
namespace {

constexpr int most_points = 2000;
constexpr int most_dimensions = 300;  // for the eigenvectors

struct Part {
  const char* name;
  const DataSet* data;
  const std::vector<std::string>* labels;
};

Part shown_part(const DataSplits& data) {
  const std::array<Part, 3> parts = {{{"test", &data.test, &data.labels.test},
                                      {"validation", &data.validation, &data.labels.validation},
                                      {"training", &data.train, &data.labels.train}}};
  for (const Part& part : parts)
    if (part.data->size() > 0 && !part.labels->empty()) return part;
  return *std::ranges::find_if(parts, [](const Part& part) { return part.data->size() > 0; });
}

// A label as a cell: commas and quotes would end it.
std::string cell(std::string text) {
  std::ranges::replace(text, ',', ' ');
  std::ranges::replace(text, '"', '\'');
  return text;
}

}  // namespace

PrincipalPlane principal_plane(const Matrix<double>& points) {
  const int dimensions = points.rows(), count = points.cols();
  std::vector<double> mean(dimensions);
  for (int c = 0; c < count; ++c)
    for (int d = 0; d < dimensions; ++d) mean[d] += points(d, c) / count;
  Matrix<double> covariance(dimensions, dimensions);
  for (int c = 0; c < count; ++c)
    for (int i = 0; i < dimensions; ++i)
      for (int j = 0; j < dimensions; ++j)
        covariance(i, j) += (points(i, c) - mean[i]) * (points(j, c) - mean[j]) / count;
  const SymmetricEigen eigen = symmetric_eigen(std::move(covariance));
  const double total = std::reduce(eigen.value.begin(), eigen.value.end());
  PrincipalPlane plane{Matrix<double>(2, count), {0, 0}};
  for (int k = 0; k < 2; ++k) {
    plane.share[k] = total > 0 ? eigen.value[k] / total : 0;
    double sign = 0;  // the largest entry of the axis is positive, so that the picture does not depend on chance
    for (int d = 0; d < dimensions; ++d)
      if (std::abs(eigen.vector(d, k)) > std::abs(sign)) sign = eigen.vector(d, k);
    for (int c = 0; c < count; ++c)
      for (int d = 0; d < dimensions; ++d)
        plane.points(k, c) += (sign < 0 ? -1 : 1) * eigen.vector(d, k) * (points(d, c) - mean[d]);
  }
  return plane;
}

void write_latent_plot(const RunFolder& folder, const TrainRunConfig& config, const DataSplits& data,
                       const TrainState& state) {
  const int latent = config.train.model.latent;
  if (latent > most_dimensions) return;
  const Part part = shown_part(data);
  const int count = std::min(most_points, part.data->size());
  std::vector<int> indices(count);
  std::iota(indices.begin(), indices.end(), 0);
  Matrix<double> mean(latent, count), sd(latent, count);
  const auto networks = freeze(config.train, state, data.train);
  constexpr int block = 250;  // data that are expanded at once: they may be memory-mapped, and larger than memory
  for (int begin = 0; begin < count; begin += block) {
    const int end = std::min(count, begin + block);
    networks->encode(*part.data, std::span(indices).subspan(begin, end - begin), mean.view().columns(begin, end),
                     sd.view().columns(begin, end));
  }
  std::string x = "first dimension of z", y = "second dimension of z";
  if (latent == 1) {
    Matrix<double> both(2, count);
    for (int c = 0; c < count; ++c) {
      both(0, c) = mean(0, c);
      both(1, c) = sd(0, c);
    }
    mean = std::move(both);
    x = "z";
    y = "standard deviation of q";
  } else if (latent > 2) {
    PrincipalPlane plane = principal_plane(mean);
    mean = std::move(plane.points);
    x = fmt::format("first principal component ({:.0f} % of the variance)", 100 * plane.share[0]);
    y = fmt::format("second principal component ({:.0f} %)", 100 * plane.share[1]);
  }
  std::string rows = "x,y,label\n";
  for (int c = 0; c < count; ++c)
    rows += fmt::format("{:.6g},{:.6g},{}\n", mean(0, c), mean(1, c),
                        part.labels->empty() ? "" : cell((*part.labels)[static_cast<std::size_t>(c)]));
  const std::filesystem::path figures = folder.figures();
  write_file(figures / "latent.csv", rows);
  const Json json = {{"split", part.name}, {"count", count}, {"x", x}, {"y", y}, {"iteration", state.iteration}};
  write_file(figures / "latent.json", json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace hone
