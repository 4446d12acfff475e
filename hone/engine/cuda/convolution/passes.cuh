#pragma once

#include "hone/engine/cuda/convolution/images.cuh"
#include "hone/engine/cuda/convolution/window_scratch.cuh"
#include "hone/engine/cuda/product/product_choice.cuh"

namespace hone::cuda {

template <class T>
struct Images {
  T* numbers;
  int ld;           // from an image to the next
  std::size_t net;  // floats from a network's to the next one's
};
template <class E>
struct PassWeights {
  const E* numbers;  // (outputs of the product, ld), neighbours along k
  int ld;
  std::size_t net;
};

// The products of a convolution, forward or back, for networks side by side: all windows of some images at a time. What
// follows the product is as for a dense layer, an epilogue `Layered` with a bias per channel. E is float or Tf32.
template <class E, Math math>
class ImagePass {
 public:
  ImagePass(const WindowIndex& windows, const WindowScratch& scratch, int images, const Beside& beside,
            cudaStream_t stream)
      : w_(windows), scratch_(scratch), images_(images), beside_(beside), stream_(stream) {}

  // Large images → windows → small images
  template <class From, class To, bool back>
  void shrink(const Images<const From>& from, const PassWeights<E>& weights, const Layered<math, To, back>& finish,
              const Distances& to) const {
    each_part([&](int first, int images) {
      const int rows = images * w_.count();
      gather(from, WindowPlace{w_}, first, images, scratch_.numbers, w_.depth());
      const Product<E> product{windows(), weights.numbers, w_.depth(), weights.ld, rows, w_.coarse, w_.depth()};
      Layered<math, To, back> there = moved(finish, first);
      if (in_place(finish.ld)) {
        there.ld = w_.coarse;
        launch_product<E, math>(product, beside(scratch_.net, weights.net, to.c, to.bias), there, stream_);
        return;
      }
      const int ld = round_up(w_.coarse, 4);
      multiply(product, weights.net, pixels(), ld);
      finish_all(PixelRows{w_.count(), w_.coarse, ld}, pixels(), images, w_.small(), w_.coarse, there, to);
    });
  }

  // Small images → windows → large images, where what windows share is summed
  template <class To, bool back>
  void grow(const Images<const E>& from, const PassWeights<E>& weights, const Layered<math, To, back>& finish,
            const Distances& to) const {
    each_part([&](int first, int images) {
      const int rows = images * w_.count(), padded = round_up(w_.coarse, 4);
      const bool there = in_place(from.ld);
      if (!there) gather(from, PixelPlace{w_.coarse}, first, images, pixels(), padded);
      const E* const small =
          there ? from.numbers + static_cast<std::size_t>(first) * from.ld : reinterpret_cast<const E*>(pixels());
      const Product<E> product{small, weights.numbers, padded, weights.ld, rows, w_.depth(), w_.coarse};
      multiply(product, weights.net, scratch_.numbers, w_.depth(), there ? from.net : scratch_.net);
      finish_all(WindowSums{w_}, scratch_.numbers, images, w_.large(), w_.fine, moved(finish, first), to);
    });
  }

 private:
  template <class F>  // f(first, images)
  void each_part(F f) const {
    const int most = w_.images_at_once();
    for (int first = 0; first < images_; first += most) f(first, std::min(most, images_ - first));
  }
  // Whether small images are matrices of pixels as they lie.
  bool in_place(int ld) const { return w_.coarse % 4 == 0 && ld == w_.small(); }
  float* pixels() const { return scratch_.numbers + scratch_.pixels; }
  const E* windows() const { return reinterpret_cast<const E*>(scratch_.numbers); }
  Beside beside(std::size_t a, std::size_t b, std::size_t c, std::size_t bias = 0) const {
    Beside all = beside_;
    all.net = {a, b, c, bias};
    return all;
  }
  template <class To, bool back>
  static Layered<math, To, back> moved(Layered<math, To, back> finish, int first) {
    const std::size_t numbers = static_cast<std::size_t>(first) * finish.ld;
    finish.y += numbers;
    if (back && finish.with) finish.with += numbers;
    return finish;
  }

  template <class From, class Place>
  void gather(const Images<const From>& from, const Place& place, int first, int images, float* to, int ld) const {
    const GatherShape shape{.images = images,
                            .count = w_.count(),
                            .width = place.width(),
                            .channels = place.channels(),
                            .ld_images = from.ld,
                            .ld = ld};
    const Grid grid = threads_for(images * w_.count() * (ld / 4), beside_.count());
    launch(gather_rows<From, E, Place>, grid, stream_, "gathering windows", shape, place,
           from.numbers + static_cast<std::size_t>(first) * from.ld, reinterpret_cast<E*>(to),
           beside(from.net, 0, scratch_.net));
  }
  // → (rows, ld) in the scratch memory, as floats
  void multiply(const Product<E>& product, std::size_t net_weights, float* to, int ld) const {
    multiply(product, net_weights, to, ld, scratch_.net);
  }
  void multiply(const Product<E>& product, std::size_t net_weights, float* to, int ld, std::size_t net_from) const {
    launch_product<E, math>(product, beside(net_from, net_weights, scratch_.net),
                            Activated<math, float>{to, nullptr, ld, Activation::linear}, stream_);
  }
  template <class Source, class To, bool back>
  void finish_all(const Source& source, const float* parts, int images, int numbers, int channels,
                  const Layered<math, To, back>& finish, const Distances& to) const {
    launch(finish_images<Source, math, To, back>, threads_for(images * numbers, beside_.count()), stream_,
           "finishing images", FinishShape{images, numbers, channels}, source, parts, finish,
           beside(scratch_.net, 0, to.c, to.bias));
  }

  WindowIndex w_;
  WindowScratch scratch_;
  int images_;
  Beside beside_;  // without the networks' distances
  cudaStream_t stream_;
};

}  // namespace hone::cuda
