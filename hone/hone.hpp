#pragma once

/// \file
/// All of the library's API.
///
/// \mainpage hone
/// Variational inference sharpened by MCMC. Include `hone/hone.hpp` and link `hone::hone`.
///
/// - One posterior, without tuning: hone::fit_and_check fits q to a hone::Posterior, refines its draws and gives a
///   verdict. hone::make_posterior makes a posterior from a callable, hone::load_bridgestan from a Stan model.
/// - Full control over one fit: hone::Fit runs the paper's Algorithm 1 on a hone::Target and a hone::Family.
/// - Latent-variable models: hone::make_engine trains and evaluates them on a hone::DataSet, with a
///   hone::AmortizedFamily and a hone::ModelOptimizer of your own if you like.
/// - What a fit is worth: hone::estimate_divergence, hone::refine_draws, hone::smooth_weights, hone::judge,
///   hone::Annealer.
///
/// Bad input throws hone::InputError, anything else that ends a computation hone::Error. The library never prints and
/// never exits. Batches of points are matrices with one point per column.

#include "hone/assess/annealing.hpp"
#include "hone/assess/divergence.hpp"
#include "hone/assess/importance.hpp"
#include "hone/assess/refined_draws.hpp"
#include "hone/assess/verdict.hpp"
#include "hone/base/error.hpp"
#include "hone/base/parallel.hpp"
#include "hone/base/random.hpp"
#include "hone/base/statistics.hpp"
#include "hone/base/want.hpp"
#include "hone/engine/config.hpp"
#include "hone/engine/engine.hpp"
#include "hone/engine/engines.hpp"
#include "hone/engine/evaluation.hpp"
#include "hone/engine/train_state.hpp"
#include "hone/family/family.hpp"
#include "hone/family/gaussian.hpp"
#include "hone/family/mixture.hpp"
#include "hone/family/normal.hpp"
#include "hone/fit/checked_fit.hpp"
#include "hone/fit/fit.hpp"
#include "hone/fit/posterior_fit.hpp"
#include "hone/latent/amortized_family.hpp"
#include "hone/latent/data_set.hpp"
#include "hone/latent/model_config.hpp"
#include "hone/mcmc/hmc.hpp"
#include "hone/mcmc/kernel.hpp"
#include "hone/mcmc/mala.hpp"
#include "hone/mcmc/random_walk.hpp"
#include "hone/mcmc/refine.hpp"
#include "hone/objective/baseline.hpp"
#include "hone/objective/evidence.hpp"
#include "hone/objective/kl.hpp"
#include "hone/objective/li2017.hpp"
#include "hone/objective/objective.hpp"
#include "hone/objective/vcd.hpp"
#include "hone/optim/optimizer.hpp"
#include "hone/target/density.hpp"
#include "hone/target/posterior.hpp"
#include "hone/target/stan.hpp"
#include "hone/target/target.hpp"
#include "hone/target/whitening.hpp"
#include "hone/tensor/layer_kinds.hpp"
#include "hone/tensor/matrix.hpp"

/// \namespace hone
/// The library.
