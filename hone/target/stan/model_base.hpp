// The base class of models, with what wrapper.cpp calls. Included first, it replaces Stan's own model_base.hpp and
// model_base_crtp.hpp (Stan 2.26 and later). Those instantiate a model's log density sixteen times and everything else
// twice, which is most of the time that compiling a model takes; this one does so six times and once.

#ifndef STAN_MODEL_MODEL_BASE_HPP  // Stan's own guards: its headers are then skipped
#define STAN_MODEL_MODEL_BASE_HPP
#define STAN_MODEL_MODEL_BASE_CRTP_HPP

#include <ostream>
#include <stan/io/var_context.hpp>
#include <stan/math/rev/core.hpp>
#include <stan/model/prob_grad.hpp>
#include <stan/services/util/create_rng.hpp>
#include <string>
#include <vector>

namespace stan {
namespace model {

// What a model has. Functions have the names that Stan's have.
class model_base : public prob_grad {
 public:
  explicit model_base(size_t num_params_r) : prob_grad(num_params_r) {}
  virtual ~model_base() {}

  virtual std::string model_name() const = 0;
  virtual void get_param_names(std::vector<std::string>& names, bool tp = true, bool gq = true) const = 0;
  virtual void get_dims(std::vector<std::vector<size_t>>& dims, bool tp = true, bool gq = true) const = 0;
  virtual void constrained_param_names(std::vector<std::string>& names, bool tp = true, bool gq = true) const = 0;
  virtual void unconstrained_param_names(std::vector<std::string>& names, bool tp = true, bool gq = true) const = 0;

  virtual double log_prob(std::vector<double>& z, std::vector<int>& none, std::ostream* print) const = 0;
  virtual double log_prob_jacobian(std::vector<double>& z, std::vector<int>& none, std::ostream* print) const = 0;
  virtual math::var log_prob(std::vector<math::var>& z, std::vector<int>& none, std::ostream* print) const = 0;
  virtual math::var log_prob_jacobian(std::vector<math::var>& z, std::vector<int>& none, std::ostream* print) const = 0;
  virtual math::var log_prob_propto(std::vector<math::var>& z, std::vector<int>& none, std::ostream* print) const = 0;
  virtual math::var log_prob_propto_jacobian(std::vector<math::var>& z, std::vector<int>& none,
                                             std::ostream* print) const = 0;

  virtual void write_array(rng_t& rng, Eigen::VectorXd& z, Eigen::VectorXd& x, bool tp = true, bool gq = true,
                           std::ostream* print = nullptr) const = 0;
  virtual void transform_inits(const io::var_context& x, Eigen::VectorXd& z, std::ostream* print) const = 0;
};

template <class M>
class model_base_crtp : public model_base {
 public:
  explicit model_base_crtp(size_t num_params_r) : model_base(num_params_r) {}

  double log_prob(std::vector<double>& z, std::vector<int>& none, std::ostream* print) const override {
    return own().template log_prob<false, false>(z, none, print);
  }
  double log_prob_jacobian(std::vector<double>& z, std::vector<int>& none, std::ostream* print) const override {
    return own().template log_prob<false, true>(z, none, print);
  }
  math::var log_prob(std::vector<math::var>& z, std::vector<int>& none, std::ostream* print) const override {
    return own().template log_prob<false, false>(z, none, print);
  }
  math::var log_prob_jacobian(std::vector<math::var>& z, std::vector<int>& none, std::ostream* print) const override {
    return own().template log_prob<false, true>(z, none, print);
  }
  math::var log_prob_propto(std::vector<math::var>& z, std::vector<int>& none, std::ostream* print) const override {
    return own().template log_prob<true, false>(z, none, print);
  }
  math::var log_prob_propto_jacobian(std::vector<math::var>& z, std::vector<int>& none,
                                     std::ostream* print) const override {
    return own().template log_prob<true, true>(z, none, print);
  }
  void write_array(rng_t& rng, Eigen::VectorXd& z, Eigen::VectorXd& x, bool tp = true, bool gq = true,
                   std::ostream* print = nullptr) const override {
    own().write_array(rng, z, x, tp, gq, print);
  }

 private:
  const M& own() const { return static_cast<const M&>(*this); }
};

}  // namespace model
}  // namespace stan

#endif
