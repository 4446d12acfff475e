#include "hone/engine/cuda/convolution/gradients.cuh"

#include <algorithm>

#include "hone/engine/cuda/convolution/images.cuh"
#include "hone/engine/cuda/product/tile_product.cuh"

namespace hone::cuda {
namespace {

constexpr int side = 32, turn_rows = 8, most_segments = 64;

// Images → an operand along their windows, (width, ld): column c is window c mod count of image c / count, and 0 beyond
// the last. `ones`: one more row, of ones.
struct ColumnShape {
  int columns, count, width, ld_images, ld;
  bool ones;
};
template <class Place>
__global__ void gather_columns(ColumnShape s, Place place, const float* images, float* to, std::size_t run) {
  __shared__ float tile[side][side + 1];
  images = at(images, blockIdx.z * run);
  to = at(to, blockIdx.z * run);
  const int first_column = static_cast<int>(blockIdx.x) * side, first_row = static_cast<int>(blockIdx.y) * side;
  const int x = this_thread(), y = static_cast<int>(threadIdx.y);
#pragma unroll
  for (int i = y; i < side; i += turn_rows) {  // neighbours along k
    const int column = first_column + i, k = first_row + x;
    float number = column < s.columns && k == s.width ? 1.0f : 0.0f;
    if (column < s.columns && k < s.width)
      if (const int there = place(column % s.count, k); there >= 0)
        number = images[static_cast<std::size_t>(column / s.count) * s.ld_images + there];
    tile[i][x] = number;
  }
  __syncthreads();
#pragma unroll
  for (int i = y; i < side; i += turn_rows)
    if (first_row + i < s.width + s.ones)
      to[static_cast<std::size_t>(first_row + i) * s.ld + first_column + x] = tile[x][i];
}

// Adds up the segments, (segments, m, ld), in order: all rows but the last give the gradient of the weights,
// (m − 1, ld_weights), the last one that of the biases. Where images grow, a bias sums over the inner positions of a
// window. `adds`: to the values already there.
struct SegmentSums {
  int segments, m, n, ld, ld_weights;
  LayerKind kind;
  WindowIndex windows;
  bool adds;
};
__global__ void add_segments(SegmentSums s, const float* sums, float* weights, float* biases, std::size_t run) {
  sums = at(sums, blockIdx.y * run);
  const int index = static_cast<int>(blockIdx.x * blockDim.x) + this_thread(), row = index / s.n, column = index % s.n;
  if (row >= s.m) return;
  const auto sum_of = [&](int n) {
    double sum = 0;
    for (int i = 0; i < s.segments; ++i) sum += sums[(static_cast<std::size_t>(i) * s.m + row) * s.ld + n];
    return sum;
  };
  const auto put = [&](float* to, double sum) { *to = (s.adds ? *to : 0.0f) + static_cast<float>(sum); };
  if (row + 1 < s.m)
    return put(at(weights, blockIdx.y * run) + static_cast<std::size_t>(row) * s.ld_weights + column, sum_of(column));
  if (!biases) return;
  biases = at(biases, blockIdx.y * run);
  if (s.kind == LayerKind::down) return put(biases + column, sum_of(column));
  if (column >= s.windows.fine) return;
  double sum = 0;
  for (int i = 0; i < 4; ++i) sum += sum_of(s.windows.inner(i, column));
  put(biases + column, sum);
}

struct Rows {
  const float* first;
  int ld;
  Rows from(int image) const { return {first + static_cast<std::size_t>(image) * ld, ld}; }
};

// One layer's part of the work.
class LayerGradient {
 public:
  LayerGradient(const GradientTask& task, const GradientScratch& scratch, int l, cudaStream_t stream)
      : task_(task),
        layer_(task.net.layer[l]),
        shape_(layer_, task.batch),
        left_(scratch.numbers),
        right_(left_ + shape_.left()),
        sums_(right_ + shape_.right()),
        stream_(stream) {}

  void sum(const Rows& x, const Rows& dy) const {
    for (int first = 0; first < task_.batch; first += shape_.images) {
      const int images = std::min(shape_.images, task_.batch - first);
      const bool down = layer_.kind == LayerKind::down;
      gather_windows(down ? x.from(first) : dy.from(first), images, down ? left_ : right_, down);
      gather_pixels(down ? dy.from(first) : x.from(first), images, down ? right_ : left_, !down);
      multiply();
      add(first > 0);
    }
  }

 private:
  void gather_windows(const Rows& from, int images, float* to, bool ones) const {
    gather(WindowPlace{layer_.windows}, from, images, to, ones);
  }
  void gather_pixels(const Rows& from, int images, float* to, bool ones) const {
    gather(PixelPlace{layer_.windows.coarse}, from, images, to, ones);
  }
  template <class Place>
  void gather(const Place& place, const Rows& from, int images, float* to, bool ones) const {
    const int count = layer_.windows.count(), width = place.width();
    const ColumnShape shape{.columns = images * count,
                            .count = count,
                            .width = width,
                            .ld_images = from.ld,
                            .ld = shape_.ld(),
                            .ones = ones};
    const Grid grid{dim3(shape_.ld() / side, ceil_div(width + ones, side), task_.runs), dim3(side, turn_rows)};
    launch(gather_columns<Place>, grid, stream_, "gathering windows", shape, place, from.first, to, task_.run);
  }
  void multiply() const {
    const int ld = shape_.ld();
    const Product<float> product{left_, right_, ld, ld, shape_.m, shape_.n, shape_.segment};
    const auto segment = static_cast<std::size_t>(shape_.segment), run = task_.run;
    const Beside all{shape_.segments,
                     task_.runs,
                     {segment, segment, static_cast<std::size_t>(shape_.m) * shape_.ld_sums},
                     {run, run, run}};
    with_math(task_.math, [&]<Math math>() {
      launch_tiles<MediumTile, float, math>(
          product, all, Activated<math, float>{sums_, nullptr, shape_.ld_sums, Activation::linear}, stream_);
    });
  }
  void add(bool adds) const {
    const SegmentSums sums{.segments = shape_.segments,
                           .m = shape_.m,
                           .n = shape_.n,
                           .ld = shape_.ld_sums,
                           .ld_weights = layer_.weight_ld(),
                           .kind = layer_.kind,
                           .windows = layer_.windows,
                           .adds = adds};
    float* const gradient = task_.tape.gradient;
    launch(add_segments, threads_for(shape_.m * shape_.n, task_.runs), stream_, "adding gradients", sums, sums_,
           gradient + layer_.weight, layer_.has_bias ? gradient + layer_.bias : nullptr, task_.run);
  }

  const GradientTask& task_;
  const Layer& layer_;
  GradientShape shape_;
  float *left_, *right_, *sums_;
  cudaStream_t stream_;
};

}  // namespace

GradientShape::GradientShape(const Layer& layer, int batch)
    : images(std::min(batch, layer.windows.images_at_once())), m(layer.weight_rows() + 1), n(layer.weight_columns()) {
  const int all = images * layer.windows.count();
  segment = round_up(std::max(512, ceil_div(all, most_segments)), side);
  segments = ceil_div(all, segment);
  ld_sums = padded_width(n);
}

void GradientScratch::cover(const Net& net, int batch) {
  for (int l = 0; l < net.depth; ++l) {
    if (!net.layer[l].convolves()) continue;
    const GradientShape shape(net.layer[l], batch);
    size = std::max(size, shape.left() + shape.right() + shape.sums());
  }
}

void launch_gradients(const GradientTask& task, const GradientScratch& scratch, cudaStream_t stream) {
  const Tape& tape = task.tape;
  for (int l = 0; l < task.net.depth; ++l) {
    const Layer& layer = task.net.layer[l];
    if (!layer.convolves()) continue;
    const Rows x = l == 0 ? Rows{tape.input, tape.ld_input} : Rows{tape.value[l - 1], task.net.layer[l - 1].ld};
    LayerGradient(task, scratch, l, stream).sum(x, {tape.delta[l], layer.ld});
  }
}

}  // namespace hone::cuda
