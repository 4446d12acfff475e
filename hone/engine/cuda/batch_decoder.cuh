#pragma once

#include <optional>
#include <vector>

#include "hone/engine/cuda/warp_decoder.cuh"

namespace hone::cuda {

// Room for the values of a network's layers; deltas, and the values of the last layer, only where they are wanted.
struct LayerRoom {
  std::vector<Memory<float>> memory;
  Tape tape = {};
};
inline LayerRoom layer_room(const Net& net, std::size_t rows, bool deltas, bool outputs) {
  LayerRoom room;
  for (int l = 0; l < net.depth; ++l) {
    if (l + 1 < net.depth || outputs) {
      room.memory.emplace_back(rows * net.layer[l].ld);
      room.tape.value[l] = room.memory.back().data();
    }
    if (!deltas) continue;
    room.memory.emplace_back(rows * net.layer[l].ld);
    room.tape.delta[l] = room.memory.back().data();
  }
  return room;
}

// log p(x | z) of up to `most` rows at once, and its gradients where those are wanted: in one kernel where tf32's
// precision is asked for and the decoder fits one (WarpDecoder), else one kernel a product. The parameters must not
// change meanwhile.
template <Math math>
class BatchDecoder {
 public:
  using Products = Networks<math, LargeTile>;

  BatchDecoder(const Net& net, const float* parameters, Density density, int most, bool gradients, cudaStream_t stream)
      : net_(net),
        density_(density),
        products_(net, parameters, {1, 1, 0, 0, static_cast<std::size_t>(most), 0}, stream) {
    if (in_one_kernel(net, density))
      warps_.emplace(net, parameters, stream);
    else
      room_ = layer_room(net, most, gradients, false);
  }

  static bool in_one_kernel(const Net& net, Density density) {
    return math == Math::tf32 && WarpDecoder::holds(net, density);
  }
  int tiles() const { return warps_ ? 1 : Products::partial_tiles(net_.outputs()); }  // of DecoderRows::partial

  void run(const DecoderRows& rows) {
    if (warps_) return warps_->run(rows);
    room_.tape.input = rows.input;
    room_.tape.ld_input = rows.ld;
    const bool gradient = rows.answer != nullptr;
    const Comparison data{density_, rows.x, rows.ldx, rows.rows_per_datum, nullptr, rows.partial, gradient};
    gradient ? products_.gradient(room_.tape, rows.rows, data, rows.answer, rows.ld)
             : products_.compare(room_.tape, rows.rows, data);
  }

 private:
  const Net& net_;
  Density density_;
  Products products_;
  std::optional<WarpDecoder> warps_;
  LayerRoom room_;
};

}  // namespace hone::cuda
