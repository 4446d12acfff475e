#pragma once

// Deliberate faults. tests/statistical/planted_faults_test.cpp links a copy of the library compiled with
// HONE_PLANTED_FAULTS, plants one fault at a time, and requires that the statistical checks notice it. In the
// library that users link, planted() is the constant false and every fault is compiled away.
namespace hone {

enum class Fault {
  none,
  no_metropolis,          // every finite proposal is accepted
  missing_half_kick,      // the trajectory's last half kick is left out
  stale_momentum,         // momenta are drawn at the first step of a refinement only
  score_term_dropped,     // eq. gradient_term2 without the score at z0
  score_term_sign,        // eq. gradient_term2 with the score at z0 added, not subtracted
  refined_score_sign,     // eq. gradient_term2 with the score at z_t subtracted, not added
  baseline_after_update,  // the control variate has seen the values that it centres
  missing_log_det,        // chains in adapted coordinates move without the determinant of their map
};

#ifdef HONE_PLANTED_FAULTS
inline Fault planted_fault = Fault::none;
inline bool planted(Fault fault) { return planted_fault == fault; }
#else
constexpr bool planted(Fault) { return false; }
#endif

}  // namespace hone
