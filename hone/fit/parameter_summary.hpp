#pragma once

#include <string>

#include "hone/fit/checked_fit.hpp"

namespace hone {

// Fills `parameters` from the natural-scale values of draws of q, any number of them, and of the refined draws.
// `natural_before` has those of the states before the refined draws.
void summarize(const Posterior& posterior, const Matrix<double>& natural_of_q, const Matrix<double>& natural_before,
               CheckedFit& fit);

// Of the parameters proper: the largest shift and the worst sd, with the errors that the draws leave them, and the
// heaviest tail.
NaturalChecks natural_checks(const CheckedFit& fit, const Matrix<double>& natural_of_q);

// A sentence on values that are not finite at some refined draws: the table has no figures for them. Empty: none are.
std::string not_finite(const CheckedFit& fit);

}  // namespace hone
