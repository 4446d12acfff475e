// BridgeStan's C interface (version 2.9) on top of any model that Stan translates: today's, or 2.21. hone carries this
// text and compiles it on the user's machine, once, against Stan's headers; it is no part of hone's own library. Models
// are called from any thread: every entry makes sure that the thread has its own tape.
#if __has_include(<stan/io/validate_dims.hpp>)  // Stan 2.26 and later
#define HONE_STAN_TODAY
#include "hone/target/stan/model_base.hpp"
#endif

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <mutex>
#include <ostream>
#include <stan/io/var_context.hpp>
#include <stan/math/rev/core.hpp>
#include <stan/model/model_base.hpp>
#include <stan/services/util/create_rng.hpp>
#include <stan/version.hpp>
#include <stdexcept>
#include <streambuf>
#include <string>
#include <vector>
#ifdef HONE_STAN_TODAY
#include <stan/io/validate_dims.hpp>
#endif

#include "hone/target/stan/json.hpp"

stan::model::model_base& new_model(stan::io::var_context& data, unsigned int seed, std::ostream* messages);

namespace {

using hone_data::Variable;
using hone_data::Variables;

// Data, or values of parameters, as Stan asks for them.
class Context : public stan::io::var_context {
 public:
  explicit Context(const Variables& variables) : variables_(variables) {}
  bool contains_r(const std::string& name) const { return at(name) != nullptr; }
  bool contains_i(const std::string& name) const { return at(name) && at(name)->integers; }
  std::vector<double> vals_r(const std::string& name) const {
    return contains_r(name) ? hone_data::first_index_fastest<double>(*at(name)) : std::vector<double>();
  }
  std::vector<int> vals_i(const std::string& name) const {
    return contains_i(name) ? hone_data::first_index_fastest<int>(*at(name)) : std::vector<int>();
  }
  // Complex numbers are pairs: the last index, which is the slowest here, is 1 for the real parts.
  std::vector<std::complex<double>> vals_c(const std::string& name) const {
    const std::vector<double> pairs = vals_r(name);
    std::vector<std::complex<double>> values(pairs.size() / 2);
    for (size_t i = 0; i < values.size(); ++i) values[i] = {pairs[i], pairs[i + values.size()]};
    return values;
  }
  std::vector<size_t> dims_r(const std::string& name) const {
    return contains_r(name) ? at(name)->dims : std::vector<size_t>();
  }
  std::vector<size_t> dims_i(const std::string& name) const {
    return contains_i(name) ? at(name)->dims : std::vector<size_t>();
  }
  void names_r(std::vector<std::string>& names) const { list(names, false); }
  void names_i(std::vector<std::string>& names) const { list(names, true); }
#ifdef HONE_STAN_TODAY
  // An empty array may be written [], whatever its number of dimensions.
  void validate_dims(const std::string& stage, const std::string& name, const std::string& type,
                     const std::vector<size_t>& declared) const {
    const bool none = std::find(declared.begin(), declared.end(), size_t(0)) != declared.end();
    if (none && contains_r(name) && at(name)->values.empty()) return;
    stan::io::validate_dims(*this, stage, name, type, declared);
  }
#endif

 private:
  const Variable* at(const std::string& name) const { return hone_data::find(variables_, name); }
  void list(std::vector<std::string>& names, bool integers) const {
    names.clear();
    for (const auto& entry : variables_)
      if (entry.second.integers == integers) names.push_back(entry.first);
  }

  Variables variables_;
};

// JSON text, or the name of a file of it, or nothing.
Variables read_variables(const char* given) {
  std::string text = given ? given : "";
  if (text.size() >= 5 && text.compare(text.size() - 5, 5, ".json") == 0) {
    std::ifstream file(text.c_str());
    if (!file) throw std::runtime_error("data: cannot open " + text);
    text.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  if (text.empty()) return Variables();
  try {
    return hone_data::JsonReader(text).read();
  } catch (const std::runtime_error& problem) {
    throw std::runtime_error(std::string("data: ") + problem.what());
  }
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ",") + name;
  return text;
}

// The tape of this thread, made at its first call and freed when the thread ends.
void prepare_thread() {
  thread_local stan::math::ChainableStack tape;
  (void)tape;
}

// Takes everything off the tape, also what an exception left in a nested part of it.
struct CleanTape {
  ~CleanTape() {
    while (!stan::math::empty_nested()) stan::math::recover_memory_nested();
    stan::math::recover_memory();
  }
};

void tell(char** error, const char* what) {
  if (!error) return;
  *error = static_cast<char*>(std::malloc(std::strlen(what) + 1));
  if (*error) std::strcpy(*error, what);
}

using Print = void (*)(const char*, size_t);
Print print_callback = nullptr;
std::mutex print_mutex;

// Where models print: a stream per thread, whose text goes to the callback, or else to standard output, when a call
// ends.
class Prints : public std::streambuf {
 public:
  std::ostream stream{this};
  ~Prints() { deliver(); }
  void deliver() {
    if (text_.empty()) return;
    const std::lock_guard<std::mutex> lock(print_mutex);
    if (print_callback)
      print_callback(text_.data(), text_.size());
    else
      std::fwrite(text_.data(), 1, text_.size(), stdout);
    text_.clear();
  }

 protected:
  int_type overflow(int_type letter) override {
    if (letter != traits_type::eof()) text_ += static_cast<char>(letter);
    return 0;
  }
  std::streamsize xsputn(const char* letters, std::streamsize count) override {
    text_.append(letters, static_cast<size_t>(count));
    return count;
  }

 private:
  std::string text_;
};

Prints& prints() {
  thread_local Prints own;
  return own;
}

// Runs body(stream to print to); an exception becomes −1 and a message.
template <class Body>
int guarded(char** error, Body body) {
  int status = -1;
  try {
    prepare_thread();
    body(&prints().stream);
    status = 0;
  } catch (const std::exception& problem) {
    tell(error, problem.what());
  } catch (...) {
    tell(error, "unknown exception");
  }
  prints().deliver();
  return status;
}

using Engine = decltype(stan::services::util::create_rng(1, 1));

}  // namespace

struct bs_model {
  stan::model::model_base* model;
  std::string name, info, unconstrained;
  std::string names[2][2];  // with transformed parameters, with generated quantities
  int counts[2][2];

  bs_model(const char* data, unsigned int seed, std::ostream* print) {
    Context context(read_variables(data));
    model = &new_model(context, seed, print);
    name = model->model_name();
    info = "BridgeStan interface by hone: 2.9.0\nStan version: " + stan::MAJOR_VERSION + "." + stan::MINOR_VERSION +
           "." + stan::PATCH_VERSION + "\nStan C++ Defines:\n\tSTAN_THREADS=true\n";
    std::vector<std::string> list;
    model->unconstrained_param_names(list, false, false);
    unconstrained = joined(list);
    for (int tp = 0; tp < 2; ++tp)
      for (int gq = 0; gq < 2; ++gq) {
        list.clear();
        model->constrained_param_names(list, tp, gq);
        names[tp][gq] = joined(list);
        counts[tp][gq] = static_cast<int>(list.size());
      }
  }
  ~bs_model() { delete model; }
};

struct bs_rng {
  Engine engine;
};

#define BS_PUBLIC extern "C" __attribute__((visibility("default")))

BS_PUBLIC int bs_major_version, bs_minor_version, bs_patch_version;
int bs_major_version = 2, bs_minor_version = 9, bs_patch_version = 0;

BS_PUBLIC void bs_free_error_msg(char* message) { std::free(message); }

BS_PUBLIC bs_model* bs_model_construct(const char* data, unsigned int seed, char** error) {
  bs_model* result = nullptr;
  guarded(error, [&](std::ostream* print) { result = new bs_model(data, seed, print); });
  return result;
}

BS_PUBLIC void bs_model_destruct(bs_model* m) { delete m; }
BS_PUBLIC const char* bs_name(const bs_model* m) { return m->name.c_str(); }
BS_PUBLIC const char* bs_model_info(const bs_model* m) { return m->info.c_str(); }
BS_PUBLIC const char* bs_param_names(const bs_model* m, bool tp, bool gq) { return m->names[tp][gq].c_str(); }
BS_PUBLIC const char* bs_param_unc_names(const bs_model* m) { return m->unconstrained.c_str(); }
BS_PUBLIC int bs_param_num(const bs_model* m, bool tp, bool gq) { return m->counts[tp][gq]; }
BS_PUBLIC int bs_param_unc_num(const bs_model* m) { return static_cast<int>(m->model->num_params_r()); }

BS_PUBLIC bs_rng* bs_rng_construct(unsigned int seed, char** error) {
  bs_rng* result = nullptr;
  guarded(error, [&](std::ostream*) { result = new bs_rng{stan::services::util::create_rng(seed, 1)}; });
  return result;
}
BS_PUBLIC void bs_rng_destruct(bs_rng* rng) { delete rng; }

BS_PUBLIC int bs_set_print_callback(Print callback, char**) {
  const std::lock_guard<std::mutex> lock(print_mutex);
  print_callback = callback;
  return 0;
}

BS_PUBLIC int bs_param_constrain(const bs_model* m, bool tp, bool gq, const double* unconstrained, double* constrained,
                                 bs_rng* rng, char** error) {
  return guarded(error, [&](std::ostream* print) {
    if (gq && !rng) throw std::invalid_argument("generated quantities need a random number generator");
    static const Engine start = stan::services::util::create_rng(0, 1);  // to make one takes longer than to copy it
    Engine unused = start;
    Eigen::VectorXd z = Eigen::Map<const Eigen::VectorXd>(unconstrained, m->model->num_params_r()), x;
    CleanTape clean;
    m->model->write_array(rng ? rng->engine : unused, z, x, tp, gq, print);
    if (x.size() != m->counts[tp][gq]) throw std::runtime_error("the model wrote fewer values than it has names");
    std::copy(x.data(), x.data() + x.size(), constrained);
  });
}

namespace {

// Values of the parameters, the first index fastest, under their names.
Variables parameters_of(const bs_model* m, const double* constrained) {
  std::vector<std::string> names;
  std::vector<std::vector<size_t>> dims;
  m->model->get_param_names(names);  // parameters first; Stan 2.21 lists all
  m->model->get_dims(dims);
  Variables result;
  size_t at = 0;
  for (size_t k = 0; k < names.size(); ++k) {
    size_t count = 1;
    for (const size_t d : dims[k]) count *= d;
    if (at + count > static_cast<size_t>(m->counts[0][0])) break;
    Variable reversed;  // the first index fastest is the last one fastest, with the dimensions in reverse
    reversed.values.assign(constrained + at, constrained + at + count);
    reversed.dims.assign(dims[k].rbegin(), dims[k].rend());
    Variable& own = result[names[k]];
    own.values = hone_data::first_index_fastest<double>(reversed);
    own.dims = dims[k];
    own.integers = false;
    at += count;
  }
  return result;
}

void unconstrain(const bs_model* m, const Variables& variables, double* unconstrained, std::ostream* print) {
  Eigen::VectorXd z;
  CleanTape clean;
  m->model->transform_inits(Context(variables), z, print);
  if (z.size() != static_cast<long>(m->model->num_params_r()))
    throw std::runtime_error("the model wrote too few values");
  std::copy(z.data(), z.data() + z.size(), unconstrained);
}

// Any of the four densities.
stan::math::var density(const bs_model* m, bool propto, bool jacobian, std::vector<stan::math::var>& z,
                        std::ostream* print) {
  std::vector<int> none;
  const stan::model::model_base& model = *m->model;
  if (propto) return jacobian ? model.log_prob_propto_jacobian(z, none, print) : model.log_prob_propto(z, none, print);
  return jacobian ? model.log_prob_jacobian(z, none, print) : model.log_prob(z, none, print);
}

double gradient_of(const bs_model* m, bool propto, bool jacobian, const double* unconstrained, double* gradient,
                   std::ostream* print) {
  CleanTape clean;
  const size_t count = m->model->num_params_r();
  std::vector<stan::math::var> z(unconstrained, unconstrained + count);
  stan::math::var result = density(m, propto, jacobian, z, print);
  const double value = result.val();
  result.grad();
  for (size_t i = 0; i < count; ++i) gradient[i] = z[i].adj();
  return value;
}

// The Hessian times v: the derivative of the gradient along v, by central differences of fourth order.
std::vector<double> hessian_times(const bs_model* m, bool propto, bool jacobian, const double* z, const double* v,
                                  std::ostream* print) {
  const size_t count = m->model->num_params_r();
  double largest = 0, scale = 1;
  for (size_t i = 0; i < count; ++i) {
    largest = std::max(largest, std::abs(v[i]));
    if (v[i] != 0) scale = std::max(scale, std::abs(z[i]));
  }
  std::vector<double> product(count, 0.0), point(count), gradient(count);
  if (largest == 0) return product;
  const double h = 1e-3 * scale / largest;
  const int steps[] = {-2, -1, 1, 2};
  const double weights[] = {1, -8, 8, -1};
  for (int k = 0; k < 4; ++k) {
    for (size_t i = 0; i < count; ++i) point[i] = z[i] + steps[k] * h * v[i];
    gradient_of(m, propto, jacobian, point.data(), gradient.data(), print);
    for (size_t i = 0; i < count; ++i) product[i] += weights[k] * gradient[i] / (12 * h);
  }
  return product;
}

}  // namespace

BS_PUBLIC int bs_log_density_gradient(const bs_model* m, bool propto, bool jacobian, const double* unconstrained,
                                      double* value, double* gradient, char** error) {
  return guarded(
      error, [&](std::ostream* print) { *value = gradient_of(m, propto, jacobian, unconstrained, gradient, print); });
}

BS_PUBLIC int bs_log_density(const bs_model* m, bool propto, bool jacobian, const double* unconstrained, double* value,
                             char** error) {
  return guarded(error, [&](std::ostream* print) {
    CleanTape clean;
    const size_t count = m->model->num_params_r();
    if (propto) {  // constants are told apart by their type, so this needs the tape
      std::vector<stan::math::var> z(unconstrained, unconstrained + count);
      *value = density(m, true, jacobian, z, print).val();
    } else {
      std::vector<double> z(unconstrained, unconstrained + count);
      std::vector<int> none;
      *value = jacobian ? m->model->log_prob_jacobian(z, none, print) : m->model->log_prob(z, none, print);
    }
  });
}

BS_PUBLIC int bs_log_density_hessian(const bs_model* m, bool propto, bool jacobian, const double* unconstrained,
                                     double* value, double* gradient, double* hessian, char** error) {
  return guarded(error, [&](std::ostream* print) {
    *value = gradient_of(m, propto, jacobian, unconstrained, gradient, print);
    const size_t count = m->model->num_params_r();
    for (size_t i = 0; i < count; ++i) {
      std::vector<double> unit(count, 0.0);
      unit[i] = 1;
      const std::vector<double> row = hessian_times(m, propto, jacobian, unconstrained, unit.data(), print);
      std::copy(row.begin(), row.end(), hessian + i * count);
    }
    for (size_t i = 0; i < count; ++i)
      for (size_t j = 0; j < i; ++j)
        hessian[i * count + j] = hessian[j * count + i] = 0.5 * (hessian[i * count + j] + hessian[j * count + i]);
  });
}

BS_PUBLIC int bs_log_density_hessian_vector_product(const bs_model* m, bool propto, bool jacobian,
                                                    const double* unconstrained, const double* vector, double* value,
                                                    double* product, char** error) {
  return guarded(error, [&](std::ostream* print) {
    std::vector<double> ignored(m->model->num_params_r());
    *value = gradient_of(m, propto, jacobian, unconstrained, ignored.data(), print);
    const std::vector<double> result = hessian_times(m, propto, jacobian, unconstrained, vector, print);
    std::copy(result.begin(), result.end(), product);
  });
}

BS_PUBLIC int bs_param_unconstrain(const bs_model* m, const double* constrained, double* unconstrained, char** error) {
  return guarded(error,
                 [&](std::ostream* print) { unconstrain(m, parameters_of(m, constrained), unconstrained, print); });
}

BS_PUBLIC int bs_param_unconstrain_json(const bs_model* m, const char* json, double* unconstrained, char** error) {
  return guarded(error, [&](std::ostream* print) { unconstrain(m, read_variables(json), unconstrained, print); });
}

// A point with finite density and gradient. Parameters that the JSON text does not name are drawn uniformly from
// [−radius, radius) in the unconstrained coordinates.
BS_PUBLIC int bs_param_initialize(const bs_model* m, const char* json, bs_rng* rng, double radius, int tries,
                                  bool jacobian, double* unconstrained, char** error) {
  return guarded(error, [&](std::ostream* print) {
    if (!rng) throw std::invalid_argument("starting values need a random number generator");
    const size_t count = m->model->num_params_r();
    const Variables given = read_variables(json);
    std::string reason = "no attempt was asked for";
    std::vector<double> gradient(count);
    for (int attempt = 0; attempt < tries; ++attempt) try {
        for (size_t i = 0; i < count; ++i) {
          const double span = static_cast<double>(rng->engine.max()) - static_cast<double>(rng->engine.min()) + 1;
          const double u = (static_cast<double>(rng->engine()) - static_cast<double>(rng->engine.min())) / span;
          unconstrained[i] = radius * (2 * u - 1);
        }
        if (!given.empty()) {
          Eigen::VectorXd z = Eigen::Map<const Eigen::VectorXd>(unconstrained, count), x;
          CleanTape clean;
          m->model->write_array(rng->engine, z, x, false, false, print);
          Variables all = given;
          for (const auto& entry : parameters_of(m, x.data())) all.insert(entry);  // keeps what is given
          unconstrain(m, all, unconstrained, print);
        }
        const double value = gradient_of(m, false, jacobian, unconstrained, gradient.data(), print);
        bool finite = std::isfinite(value);
        for (const double g : gradient) finite = finite && std::isfinite(g);
        if (finite) return;
        reason = "the log density or its gradient is not finite";
      } catch (const std::exception& problem) {
        reason = problem.what();
      }
    throw std::runtime_error("no starting point was found in " + std::to_string(tries) +
                             " attempts; the last one: " + reason);
  });
}
