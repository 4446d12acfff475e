// BridgeStan's C interface (version 2) on top of any model that Stan 2.21 translates. hone carries this text and
// compiles it on the user's machine, once, against the headers of StanHeaders; it is no part of hone's own library.
// Models are called from any thread: every entry makes sure that the thread has its own tape.
#include <cctype>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <sstream>
#include <stan/io/var_context.hpp>
#include <stan/math/rev/core.hpp>
#include <stan/model/model_base.hpp>
#include <stan/services/util/create_rng.hpp>
#include <stan/version.hpp>
#include <stdexcept>
#include <string>
#include <vector>

stan::model::model_base& new_model(stan::io::var_context& data, unsigned int seed, std::ostream* messages);

namespace {

// One key of the data: numbers in the order of the JSON text, the last index fastest.
struct Variable {
  std::vector<double> values;
  std::vector<size_t> dims;  // empty for a number
  bool integers = true;      // also where there are no values
};

// A JSON object of numbers and rectangular arrays of numbers. Beyond JSON, NaN, Infinity, -Infinity, bare or as
// strings, are numbers, as in Stan's other interfaces.
class JsonReader {
 public:
  explicit JsonReader(const std::string& text) : text_(text) {}

  std::map<std::string, Variable> read() {
    std::map<std::string, Variable> variables;
    expect('{', "an object of data, '{'");
    if (!take('}')) {
      do {
        skip_space();
        key_.clear();
        key_ = string();
        if (variables.count(key_)) fail("the key stands twice");
        expect(':', "':'");
        Variable variable;
        value(variable, 0);
        variables[key_] = variable;
      } while (take(','));
      expect('}', "',' or '}'");
    }
    skip_space();
    if (at_ != text_.size()) fail("nothing was expected after the object");
    return variables;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    size_t line = 1;
    for (size_t i = 0; i < at_ && i < text_.size(); ++i) line += text_[i] == '\n';
    std::ostringstream message;
    message << "data: line " << line << (key_.empty() ? "" : ", key '" + key_ + "'") << ": " << what;
    throw std::runtime_error(message.str());
  }
  static bool one_of(char letter, const char* letters) { return letter && std::strchr(letters, letter); }
  void skip_space() {
    while (at_ < text_.size() && one_of(text_[at_], " \t\r\n")) ++at_;
  }
  bool take(char letter) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != letter) return false;
    ++at_;
    return true;
  }
  void expect(char letter, const std::string& what) {
    if (!take(letter)) fail("not JSON: expected " + what);
  }
  std::string string() {
    expect('"', "a string");
    std::string result;
    while (at_ < text_.size() && text_[at_] != '"') {
      if (text_[at_] == '\\' || text_[at_] == '\n') fail("not JSON: expected a plain string");
      result += text_[at_++];
    }
    if (at_ >= text_.size()) fail("not JSON: a string does not end");
    ++at_;
    return result;
  }

  void value(Variable& variable, size_t depth) {
    if (!take('[')) {
      if (variable.dims.size() > depth) fail("a number stands where an array was expected");
      return number(variable);
    }
    if (depth >= 32) fail("arrays are nested too deeply");
    const bool known = variable.dims.size() > depth;
    if (!known && !variable.values.empty()) fail("an array stands where a number was expected");
    if (!known) variable.dims.push_back(0);
    size_t count = 0;
    if (!take(']')) {
      do {
        // Where the first entry holds no array, no other may.
        if (count > 0 && !known && variable.dims.size() == depth + 1 && peek() == '[')
          fail("an array stands where a number was expected");
        value(variable, depth + 1);
        ++count;
      } while (take(','));
      expect(']', "',' or ']'");
    }
    if (known && variable.dims[depth] != count) fail("the array is not rectangular");
    variable.dims[depth] = count;
  }
  char peek() {
    skip_space();
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  void number(Variable& variable) {
    const char first = peek();
    std::string word;
    if (first == '"') {
      word = string();
    } else {
      while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || one_of(text_[at_], "+-.")))
        word += text_[at_++];
    }
    const double inf = std::numeric_limits<double>::infinity();
    static const std::map<std::string, double> special = {{"NaN", std::numeric_limits<double>::quiet_NaN()},
                                                          {"nan", std::numeric_limits<double>::quiet_NaN()},
                                                          {"Inf", inf},
                                                          {"+Inf", inf},
                                                          {"inf", inf},
                                                          {"Infinity", inf},
                                                          {"+Infinity", inf},
                                                          {"+inf", inf},
                                                          {"-Inf", -inf},
                                                          {"-inf", -inf},
                                                          {"-Infinity", -inf}};
    const auto found = special.find(word);
    if (found != special.end()) {
      variable.values.push_back(found->second);
      variable.integers = false;
      return;
    }
    if (first == '"' || word.empty() || !(word[0] == '-' || std::isdigit(static_cast<unsigned char>(word[0]))))
      fail("expected a number or an array of numbers");
    char* end = nullptr;
    const double parsed = std::strtod(word.c_str(), &end);
    if (*end) fail("not JSON: '" + word + "' is no number");
    const bool integer = word.find_first_of(".eE") == std::string::npos && parsed >= INT_MIN && parsed <= INT_MAX;
    variable.integers = variable.integers && integer;
    variable.values.push_back(parsed);
  }

  const std::string& text_;
  size_t at_ = 0;
  std::string key_;
};

// The values of an array of these dimensions with the first index fastest, as Stan asks for them.
template <class T>
std::vector<T> first_index_fastest(const Variable& variable) {
  std::vector<T> result(variable.values.size());
  std::vector<size_t> index(variable.dims.size(), 0);
  for (size_t from = 0; from < variable.values.size(); ++from) {
    size_t to = 0, stride = 1;
    for (size_t d = 0; d < index.size(); ++d) {
      to += index[d] * stride;
      stride *= variable.dims[d];
    }
    result[to] = static_cast<T>(variable.values[from]);
    for (size_t d = index.size(); d-- > 0;) {
      if (++index[d] < variable.dims[d]) break;
      index[d] = 0;
    }
  }
  return result;
}

class JsonContext : public stan::io::var_context {
 public:
  explicit JsonContext(const std::string& text) : variables_(JsonReader(text).read()) {}
  JsonContext() {}
  bool contains_r(const std::string& name) const { return variables_.count(name) > 0; }
  bool contains_i(const std::string& name) const { return contains_r(name) && variables_.at(name).integers; }
  std::vector<double> vals_r(const std::string& name) const {
    return contains_r(name) ? first_index_fastest<double>(variables_.at(name)) : std::vector<double>();
  }
  std::vector<int> vals_i(const std::string& name) const {
    return contains_i(name) ? first_index_fastest<int>(variables_.at(name)) : std::vector<int>();
  }
  std::vector<size_t> dims_r(const std::string& name) const {
    return contains_r(name) ? variables_.at(name).dims : std::vector<size_t>();
  }
  std::vector<size_t> dims_i(const std::string& name) const {
    return contains_i(name) ? variables_.at(name).dims : std::vector<size_t>();
  }
  void names_r(std::vector<std::string>& names) const { list(names, false); }
  void names_i(std::vector<std::string>& names) const { list(names, true); }

 private:
  void list(std::vector<std::string>& names, bool integers) const {
    names.clear();
    for (const auto& entry : variables_)
      if (entry.second.integers == integers) names.push_back(entry.first);
  }

  std::map<std::string, Variable> variables_;
};

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

// Runs a body; an exception becomes −1 and a message.
template <class Body>
int guarded(char** error, Body body) {
  try {
    prepare_thread();
    body();
    return 0;
  } catch (const std::exception& problem) {
    tell(error, problem.what());
  } catch (...) {
    tell(error, "unknown exception");
  }
  return -1;
}

}  // namespace

struct bs_model {
  stan::model::model_base* model;
  std::string name, info, unconstrained;
  std::string names[2][2];  // with transformed parameters, with generated quantities
  int counts[2][2];

  bs_model(const char* data, unsigned int seed) {
    std::string text = data ? data : "";
    if (text.size() >= 5 && text.compare(text.size() - 5, 5, ".json") == 0) {
      std::ifstream file(text.c_str());
      if (!file) throw std::runtime_error("data: cannot open " + text);
      text.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    }
    JsonContext context = text.empty() ? JsonContext() : JsonContext(text);
    model = &new_model(context, seed, nullptr);
    name = model->model_name();
    info = "BridgeStan interface by hone: 2.0.0\nStan version: " + stan::MAJOR_VERSION + "." + stan::MINOR_VERSION +
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
  boost::ecuyer1988 engine;
};

#define BS_PUBLIC extern "C" __attribute__((visibility("default")))

BS_PUBLIC int bs_major_version, bs_minor_version, bs_patch_version;
int bs_major_version = 2, bs_minor_version = 0, bs_patch_version = 0;

BS_PUBLIC void bs_free_error_msg(char* message) { std::free(message); }

BS_PUBLIC bs_model* bs_model_construct(const char* data, unsigned int seed, char** error) {
  bs_model* result = nullptr;
  guarded(error, [&] { result = new bs_model(data, seed); });
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
  guarded(error, [&] { result = new bs_rng{stan::services::util::create_rng(seed, 1)}; });
  return result;
}
BS_PUBLIC void bs_rng_destruct(bs_rng* rng) { delete rng; }

// hone's models print nothing: the stream that they would print to is null. So there is nothing to redirect.
BS_PUBLIC int bs_set_print_callback(void (*)(const char*, size_t), char**) { return 0; }

BS_PUBLIC int bs_param_constrain(const bs_model* m, bool tp, bool gq, const double* unconstrained, double* constrained,
                                 bs_rng* rng, char** error) {
  return guarded(error, [&] {
    if (gq && !rng) throw std::invalid_argument("generated quantities need a random number generator");
    boost::ecuyer1988 unused;
    Eigen::VectorXd z = Eigen::Map<const Eigen::VectorXd>(unconstrained, m->model->num_params_r()), x;
    CleanTape clean;
    m->model->write_array(rng ? rng->engine : unused, z, x, tp, gq, nullptr);
    if (x.size() != m->counts[tp][gq]) throw std::runtime_error("the model wrote fewer values than it has names");
    std::copy(x.data(), x.data() + x.size(), constrained);
  });
}

namespace {

// Any of the four densities; T is double or var.
template <class T>
T density(const bs_model* m, bool propto, bool jacobian, std::vector<T>& z) {
  std::vector<int> none;
  const stan::model::model_base& model = *m->model;
  if (propto)
    return jacobian ? model.log_prob_propto_jacobian(z, none, nullptr) : model.log_prob_propto(z, none, nullptr);
  return jacobian ? model.log_prob_jacobian(z, none, nullptr) : model.log_prob(z, none, nullptr);
}

}  // namespace

BS_PUBLIC int bs_log_density_gradient(const bs_model* m, bool propto, bool jacobian, const double* unconstrained,
                                      double* value, double* gradient, char** error) {
  return guarded(error, [&] {
    CleanTape clean;
    const size_t count = m->model->num_params_r();
    std::vector<stan::math::var> z(unconstrained, unconstrained + count);
    stan::math::var result = density(m, propto, jacobian, z);
    *value = result.val();
    result.grad();
    for (size_t i = 0; i < count; ++i) gradient[i] = z[i].adj();
  });
}

BS_PUBLIC int bs_log_density(const bs_model* m, bool propto, bool jacobian, const double* unconstrained, double* value,
                             char** error) {
  return guarded(error, [&] {
    CleanTape clean;
    const size_t count = m->model->num_params_r();
    if (propto) {  // constants are told apart by their type, so this needs the tape
      std::vector<stan::math::var> z(unconstrained, unconstrained + count);
      *value = density(m, true, jacobian, z).val();
    } else {
      std::vector<double> z(unconstrained, unconstrained + count);
      *value = density(m, false, jacobian, z);
    }
  });
}
