#pragma once

#include <string_view>

#include "hone/base/scalar.hpp"
#include "hone/tensor/layer_kinds.hpp"

// The facts of a likelihood. Each has a file in this folder: a struct with
//   density, facts    below
//   allowed(x)        whether a value of a datum is possible
//   draw(…)           x ~ p(x | a) of one item
//   log_p(…), residual(…)   log p(x | a) of one item up to terms in x alone, and its derivatives in a
// Where the facts say `fused`, matrix products compute log p (hone/tensor/finish.hpp, the epilogues of the cuda
// engine), and these two serve layers that no matrix product ends: convolutions. An item is what outputs share: a value
// of the datum, or a group of values. Both engines call the same functions.
namespace hone {

// Of a datum and of the decoder's outputs for it: output i of value p is a[i · pixels + p].
struct LikelihoodShape {
  int pixels = 1;
  int categories = 0;  // values of a group; 0: there are no groups
};

enum class Noise { uniform, normal };                       // random numbers that `draw` turns into x, one per item
enum class MeanOf { outputs, sigmoid, positive, softmax };  // E[x | a], of the first output of each value

struct LikelihoodFacts {
  std::string_view name;   // in configurations, checkpoints and exports
  std::string_view needs;  // of data, in words
  MeanOf mean;
  Noise noise = Noise::uniform;
  int outputs = 1;       // of the decoder, per value of a datum
  bool fused = false;    // computed by the products themselves
  bool centred = false;  // data lose the mean of the training data
  bool counts = false;   // log p has a term − log x!
  bool bits = false;     // every value is 0 or 1
  bool grouped = false;  // needs LikelihoodShape::categories
};

}  // namespace hone
