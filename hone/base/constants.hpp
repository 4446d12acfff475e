#pragma once

namespace hone {

// Constants of formulas that several levels of instructions and both engines compute. Nothing but constants may be
// here: a function compiled for one level must not be linked where another level runs.

inline constexpr double softplus_shift = 1e-4;  // s of modified_softplus (scalar.hpp)

inline constexpr double gaussian_variance = 0.01;                      // of the likelihood `gaussian`
inline constexpr double gaussian_log_normalizer = 1.3836465597893730;  // −½ log(2π gaussian_variance)

}  // namespace hone
