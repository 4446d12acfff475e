#include "app/run/use.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>

#include "app/run/rows.hpp"
#include "app/run/using_model.hpp"
#include "hone/base/error.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> draw_columns(int draws, int latent) {
  if (draws == 1) return numbered("z", latent);
  std::vector<std::string> names;
  for (int k = 1; k <= draws; ++k)
    for (const std::string& name : numbered(fmt::format("draw_{}_z", k), latent)) names.push_back(name);
  return names;
}

void write_columns(const Matrix<double>& columns, Rows& out) {
  for (int c = 0; c < columns.cols(); ++c) out.row(columns.column(c));
}

// Rows of data of the model: a table, or a picture if the name says so.
std::unique_ptr<Rows> rows_of_data(const UseOptions& options, UsingModel& use, int count) {
  const ImageShape shape = use.networks().data().shape;
  if (options.out.extension() == ".png")
    return std::make_unique<PictureFile>(options.out, shape, count,
                                         [&use](const std::string& text) { use.note(text); });
  std::vector<int> sizes = {shape.rows, shape.cols};
  if (shape.channels > 1) sizes.push_back(shape.channels);
  if (shape.rows == 1 && shape.channels == 1) sizes = {shape.cols};
  return std::make_unique<RowFile>(
      options.out, options.otherwise,
      RowFile::Layout{
          .rows = count, .shape = sizes, .columns = numbered("x", shape.pixels()), .type = NumberType::float32});
}

// A file of points z.
DataStream points_in(const fs::path& file, int latent) {
  DataStream points({.name = file.string()}, TrainedNetworks::block, [](const DataSet&, int) {});
  if (points.shape().pixels() != latent)
    throw InputError(fmt::format("--z: {}: expected points of {} numbers, as many as z has, found {}", file.string(),
                                 latent, points.shape().pixels()));
  return points;
}

Matrix<double> values_of(const DataSet& points) {
  std::vector<int> all(points.size());
  std::iota(all.begin(), all.end(), 0);
  Matrix<double> z(points.dimension(), points.size());
  points.expand(all, z.view());
  return z;
}

// The means of q of two data.
struct Line {
  Matrix<double> from, to;

  Matrix<double> points(Range range, int count) const {
    Matrix<double> z(from.rows(), range.size());
    for (int c = 0; c < z.cols(); ++c)
      for (int d = 0; d < z.rows(); ++d) {
        const double share = static_cast<double>(range.begin + c) / (count - 1);
        z(d, c) = (1 - share) * from(d, 0) + share * to(d, 0);
      }
    return z;
  }
};

Line line_between(UsingModel& use, std::pair<int, int> ends, int count) {
  use.load_data();
  for (const int datum : {ends.first, ends.second})
    if (datum < 0 || datum >= use.count())
      throw InputError(fmt::format("--between: {} is no datum; expected numbers from 0 to {}", datum, use.count() - 1));
  if (count < 2) throw InputError("--between: expected at least two points, -n 2");
  return {use.means(use.datum(ends.first)), use.means(use.datum(ends.second))};
}

}  // namespace

int encode_data(const UseOptions& options, const EncodeOptions& wanted) {
  if (wanted.refine > 0 && !wanted.sd.empty())
    throw InputError("--sd writes the standard deviations of q; with --refine, take those of several --draws");
  if (wanted.refine == 0 && wanted.draws > 1) throw InputError("--draws needs --refine");
  refuse_to_replace(options.data, wanted.sd, "--sd");
  UsingModel use(options);
  use.load_data();
  const int count = use.count(), latent = use.latent();
  std::vector<int> shape = {latent};
  if (wanted.draws > 1) shape.insert(shape.begin(), wanted.draws);
  RowFile out(options.out, options.otherwise,
              {.rows = count, .shape = shape, .columns = draw_columns(wanted.draws, latent)});
  std::optional<RowFile> sd_file;
  if (!wanted.sd.empty())
    sd_file.emplace(wanted.sd, nullptr,
                    RowFile::Layout{.rows = count, .shape = {latent}, .columns = numbered("sd", latent)});
  use.each(wanted.refine > 0 ? "refine" : "encode", [&](const DataSet& data, int first) {
    if (wanted.refine == 0) {
      Matrix<double> sd;
      write_columns(use.means(data, &sd), out);
      if (sd_file) write_columns(sd, *sd_file);
      return;
    }
    Matrix<double> all(latent * wanted.draws, data.size());
    for (int k = 0; k < wanted.draws; ++k) {
      const Matrix<double> z = use.refined(data, first, wanted.refine, wanted.draws == 1 ? -1 : k);
      for (int c = 0; c < data.size(); ++c) std::ranges::copy(z.column(c), all.column(c).begin() + k * latent);
    }
    write_columns(all, out);
  });
  out.close();
  if (sd_file) sd_file->close();
  return count;
}

int reconstruct_data(const UseOptions& options, int refine) {
  UsingModel use(options);
  use.load_data();
  const auto out = rows_of_data(options, use, use.count());
  use.each("reconstruct", [&](const DataSet& data, int first) {
    const Matrix<double> z = refine > 0 ? use.refined(data, first, refine, -1) : use.means(data);
    Matrix<double> x(use.networks().pixels(), data.size());
    use.networks().decode(z, x);
    write_columns(x, *out);
  });
  out->close();
  return use.count();
}

int sample_model(const UseOptions& options, const SampleOptions& wanted) {
  UsingModel use(options);
  std::optional<DataStream> points;
  std::optional<Line> line;
  refuse_to_replace(wanted.z, options.out, "--out");
  if (!wanted.z.empty()) points = points_in(wanted.z, use.latent());
  if (wanted.between) line = line_between(use, *wanted.between, wanted.count);
  const int count = points ? points->size() : wanted.count;
  const auto out = rows_of_data(options, use, count);
  const auto write = [&](const Matrix<double>& z, int first) {
    Matrix<double> x(use.networks().pixels(), z.cols());
    if (wanted.kind == Sampled::means)
      use.networks().decode(z, x);
    else
      use.networks().draw_x(options.seed, first, z, x);
    write_columns(x, *out);
  };
  const auto made = [&](Range range) {
    if (line) return write(line->points(range, count), range.begin);
    Matrix<double> z(use.latent(), range.size());
    use.networks().draw_z(options.seed, range.begin, z);
    write(z, range.begin);
  };
  const int pixels = use.networks().pixels();
  if (points)
    use.each("sample", *points, count, [&](const DataSet& some, int first) {
      const int most = DataStream::at_once(TrainedNetworks::block, pixels);
      for (int begin = 0; begin < some.size(); begin += most)
        write(values_of(some.slice(begin, std::min(some.size(), begin + most))), first + begin);
    });
  else
    use.in_ranges("sample", count, pixels, made);
  out->close();
  return count;
}

}  // namespace hone
