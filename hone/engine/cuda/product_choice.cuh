#pragma once

#include <cmath>

#include "hone/engine/cuda/narrow_product.cuh"

namespace hone::cuda {

// How many µs a step along k (128 bytes of every row) takes, measured (H200): of a tile that has a multiprocessor for
// itself, and a tile's share of one that has as many as it can.
struct TilePace {
  double alone, share;
};
template <class T>
constexpr TilePace tile_pace(Math math) {
  const bool one = math == Math::tf32;  // of the three products of float32
  if (std::is_same_v<T, LargeTile>) return one ? TilePace{0.70, 0.64} : TilePace{1.86, 1.86};
  if (std::is_same_v<T, TallTile>) return one ? TilePace{0.44, 0.335} : TilePace{1.02, 0.93};
  if (std::is_same_v<T, MediumTile>) return one ? TilePace{0.32, 0.198} : TilePace{0.594, 0.478};
  static_assert(std::is_same_v<T, LargeTile> || std::is_same_v<T, TallTile> || std::is_same_v<T, MediumTile> ||
                std::is_same_v<T, LittleTile>);
  return one ? TilePace{0.168, 0.10} : TilePace{0.306, 0.168};
}

// How long so many products of a shape take side by side, in µs, by tiles of each kind: what the busiest multiprocessor
// has to do. Large tiles read least, small ones leave fewest multiprocessors without work. Products of few columns are
// narrow, however many rows there are: so the bits of a row depend neither on the choice nor on other rows.
struct ProductTimes {
  double narrow = 0, large = 0, tall = 0, medium = 0, little = 0;

  ProductTimes(int m, int n, int k_bytes, int count, Math math) {
    static const int processors = device_attribute(cudaDevAttrMultiProcessorCount);
    constexpr double launch = 3;  // µs
    if (n <= NarrowTile::columns) {
      constexpr double turn = 0.6;
      constexpr int resident = 4;
      const double waves = std::ceil(ceil_div(m, NarrowTile::m) * static_cast<double>(count) / (resident * processors));
      narrow = launch + turn * waves * ceil_div(k_bytes, NarrowTile::together * NarrowTile::turn_bytes);
      return;
    }
    const auto time = [&]<class T>(std::type_identity<T>) {
      const TilePace pace = tile_pace<T>(math);
      const double all = static_cast<double>(ceil_div(m, T::m)) * ceil_div(n, T::n) * count;
      const double tiles = std::ceil(all / processors);
      const int epilogue = T::m == 128 ? 4 : 3;  // steps
      // the last ones too may come as many at a time as there is room for; in float32 nobody gains by company
      const bool rounds = math == Math::tf32 && tiles > T::resident;
      const double full = rounds ? std::ceil(tiles / T::resident) * T::resident : tiles;
      return launch + (ceil_div(k_bytes, T::row_bytes) + epilogue) * std::max(pace.alone, full * pace.share);
    };
    large = time(std::type_identity<LargeTile>());
    tall = time(std::type_identity<TallTile>());
    medium = time(std::type_identity<MediumTile>());
    little = time(std::type_identity<LittleTile>());
  }
  double least() const { return narrow > 0 ? narrow : std::min({large, tall, medium, little}); }
};

template <class E, Math math, class Epilogue>
void launch_product(const Product<E>& p, const Beside& beside, const Epilogue& epilogue, cudaStream_t stream) {
  const ProductTimes times(p.m, p.n, p.k * static_cast<int>(sizeof(E)), beside.count(), math);
  const double least = times.least();
  if (p.n <= NarrowTile::columns)
    launch_narrow<E, math>(p, beside, epilogue, stream);
  else if (least == times.large)
    launch_tiles<LargeTile, E, math>(p, beside, epilogue, stream);
  else if (least == times.tall)
    launch_tiles<TallTile, E, math>(p, beside, epilogue, stream);
  else if (least == times.medium)
    launch_tiles<MediumTile, E, math>(p, beside, epilogue, stream);
  else
    launch_tiles<LittleTile, E, math>(p, beside, epilogue, stream);
}

}  // namespace hone::cuda
