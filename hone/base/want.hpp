#pragma once

namespace hone {

/// What a caller needs to know at a point. The inside of a leapfrog trajectory needs gradients only.
enum class Want {
  value,     ///< the log density
  gradient,  ///< its gradient
  both,      ///< both
};

/// Whether `want` includes values.
constexpr bool wants_value(Want want) { return want != Want::gradient; }
/// Whether `want` includes gradients.
constexpr bool wants_gradient(Want want) { return want != Want::value; }

}  // namespace hone
