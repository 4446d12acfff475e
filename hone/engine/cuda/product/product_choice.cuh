#pragma once

#include <cmath>
#include <limits>

#include "hone/engine/cuda/product/narrow_product.cuh"

namespace hone::cuda {

// µs per step along k (128 bytes of every row), as measured (H200): of a tile that has a multiprocessor for itself, and
// a tile's share of one that has as many as it can hold.
struct TilePace {
  double alone, share;
};
template <class T>
constexpr TilePace tile_pace(Math math) {  // float32 has three products
  const bool tf32 = math == Math::tf32;
  if (std::is_same_v<T, LargeTile>) return tf32 ? TilePace{0.70, 0.64} : TilePace{1.86, 1.86};
  if (std::is_same_v<T, TallTile>) return tf32 ? TilePace{0.44, 0.335} : TilePace{1.02, 0.93};
  if (std::is_same_v<T, MediumTile>) return tf32 ? TilePace{0.32, 0.198} : TilePace{0.594, 0.478};
  return tf32 ? TilePace{0.168, 0.10} : TilePace{0.306, 0.168};
}

// About how long `count` products of one shape take side by side, in µs without the launch: the time of the busiest
// multiprocessor.
template <class T>
double tile_time(int m, int n, int k_bytes, int count, Math math) {
  static const int processors = device_attribute(cudaDevAttrMultiProcessorCount);
  const TilePace pace = tile_pace<T>(math);
  const double tiles = std::ceil(static_cast<double>(ceil_div(m, T::m)) * ceil_div(n, T::n) * count / processors);
  const int epilogue = T::m == 128 ? 4 : 3;  // steps
  // the last round may be a full one; in float32 it does not help to run several tiles at once
  const bool rounds = math == Math::tf32 && tiles > T::resident;
  const double full = rounds ? std::ceil(tiles / T::resident) * T::resident : tiles;
  return (ceil_div(k_bytes, T::row_bytes) + epilogue) * std::max(pace.alone, full * pace.share);
}

// By the tile that takes least time: large ones read least, small ones leave fewest multiprocessors without work.
// Products of few columns are narrow, however many rows there are: so the bits of a row depend neither on the choice
// nor on other rows.
template <class E, Math math, class Epilogue>
void launch_product(const Product<E>& p, const Beside& beside, const Epilogue& epilogue, cudaStream_t stream) {
  if (p.n <= NarrowTile::columns) return launch_narrow<E, math>(p, beside, epilogue, stream);
  void (*best)(const Product<E>&, const Beside&, const Epilogue&, cudaStream_t) = nullptr;
  double least = std::numeric_limits<double>::infinity();
  const auto consider = [&]<class T>() {
    const double time = tile_time<T>(p.m, p.n, p.k * static_cast<int>(sizeof(E)), beside.count(), math);
    if (time >= least) return;
    least = time;
    best = launch_tiles<T, E, math, Epilogue>;
  };
  const auto consider_all = [&]<class... T>() { (consider.template operator()<T>(), ...); };
  consider_all.template operator()<LargeTile, TallTile, MediumTile, LittleTile>();
  best(p, beside, epilogue, stream);
}

}  // namespace hone::cuda
