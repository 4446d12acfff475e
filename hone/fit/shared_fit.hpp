#pragma once

#include "hone/fit/checked_fit.hpp"

namespace hone {

class SharedPosterior;  // target/shared_posterior.hpp

// As the functions of the API, for a posterior that ranks share: they share the searches, too. Null: nobody shares it.
PosteriorFit fit_posterior(const Target& target, const PosteriorFitConfig& config, const FitObserver& observe,
                           const SharedPosterior* shared);
CheckedFit fit_and_check(const Posterior& posterior, const CheckedFitConfig& config, const CheckedFitProgress& progress,
                         const SharedPosterior* shared);

}  // namespace hone
