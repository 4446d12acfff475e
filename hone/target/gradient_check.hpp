#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hone/target/target.hpp"

namespace hone {

/// A coordinate in which a gradient is not the derivative of the value, by far.
struct WrongGradient {
  int coordinate = 0;
  double given = 0;       // by the target
  double difference = 0;  // the value's central difference
};

/// Compares the gradient of `target` at a point with differences of its value, in at most 20 coordinates, and returns
/// the worst of those that are grossly wrong: of the other sign, or off by a factor of 1.7 or more. Sees nothing where
/// the value is not smooth, or not precise enough (it may be computed in float32), and so reports no right gradient.
/// What seems wrong is looked at again with smaller steps, and at a point nearby. Costs at most 41 values and one
/// gradient where nothing is wrong; far fewer where values take milliseconds.
std::optional<WrongGradient> wrong_gradient(const Target& target, std::span<const double> z);

/// The same in words, with the names of the coordinates; "" where nothing is wrong.
std::string gradient_complaint(const Target& target, std::span<const double> z, const std::vector<std::string>& names);

}  // namespace hone
