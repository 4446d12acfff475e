#pragma once

#include <string>

#include "hone/fit/checked_fit.hpp"

namespace hone {

// Fills `parameters` from the natural-scale values of draws of q, any number of them, and of the refined draws.
// `natural_before` has those of the states before the refined draws.
void summarize(const Posterior& posterior, const Matrix<double>& natural_of_q, const Matrix<double>& natural_before,
               CheckedFit& fit);

// Of the model's parameters: the largest shift and the worst sd, with their Monte Carlo errors, and the heaviest
// tail.
NaturalChecks natural_checks(const CheckedFit& fit, const Matrix<double>& natural_of_q);

// A sentence that names the values (names, n) that are not finite at some of the draws, `whose`, which the table omits;
// empty if none.
std::string not_finite(const Matrix<double>& values, const std::vector<std::string>& names,
                       const std::string& whose = "the draws");

}  // namespace hone
