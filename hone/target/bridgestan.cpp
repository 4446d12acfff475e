#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "hone/base/error.hpp"
#include "hone/base/file.hpp"
#include "hone/base/format.hpp"
#include "hone/base/scalar.hpp"
#include "hone/target/stan.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;

struct Model;      // BridgeStan's bs_model
struct Generator;  // and bs_rng

// The functions of BridgeStan that are used here. A bool is one byte, as in C++.
struct Interface {
  Model* (*model_construct)(const char* data, unsigned seed, char** error);
  void (*model_destruct)(Model*);
  void (*free_error_msg)(char*);
  const char* (*model_info)(const Model*);
  const char* (*param_names)(const Model*, bool transformed, bool generated);
  const char* (*param_unc_names)(const Model*);
  int (*param_num)(const Model*, bool transformed, bool generated);
  int (*param_unc_num)(const Model*);
  int (*param_constrain)(const Model*, bool transformed, bool generated, const double* unconstrained,
                         double* constrained, Generator*, char** error);
  int (*param_unconstrain)(const Model*, const double* constrained, double* unconstrained, char** error);  // or null
  int (*log_density)(const Model*, bool propto, bool jacobian, const double* z, double* value, char** error);
  int (*log_density_gradient)(const Model*, bool propto, bool jacobian, const double* z, double* value,
                              double* gradient, char** error);
  Generator* (*rng_construct)(unsigned seed, char** error);
  void (*rng_destruct)(Generator*);
  int (*set_print_callback)(void (*)(const char*, std::size_t), char** error);
};

template <class F>
void find(void* handle, const fs::path& library, const char* name, F& function) {
  void* const symbol = dlsym(handle, name);
  if (!symbol)
    throw InputError(detail::format("{}: is not a BridgeStan library: it has no function {}", library.string(), name));
  function = reinterpret_cast<F>(symbol);
}

// Only version 2 has the interface above. Version 1 shares some function names but cannot be asked for its version.
void check_version(void* handle, const fs::path& library) {
  const void* const major = dlsym(handle, "bs_major_version");
  const bool bridgestan =
      dlsym(handle, "bs_log_density_gradient") || dlsym(handle, "bs_model_construct") || dlsym(handle, "bs_construct");
  if (!major && !bridgestan)
    throw InputError(
        detail::format("{}: is not a BridgeStan library: it has none of BridgeStan's functions (bs_model_construct, …)",
                       library.string()));
  const int version = major ? *static_cast<const int*>(major) : 1;
  if (version != 2)
    throw InputError(
        detail::format("{}: was built for BridgeStan's version {}; expected version 2: build the model again "
                       "with BridgeStan 2, or give the Stan program",
                       library.string(), version));
}

// The library is never closed: its code frees the memory of threads that called it, when they end.
Interface open_library(const fs::path& library) {
  std::error_code error;
  if (!fs::is_regular_file(library, error))
    throw InputError(detail::format("{}: there is no such file; expected a compiled model (.so)", library.string()));
  // A slash in the name makes dlopen load the file itself, not one of the system's libraries.
  void* const handle = dlopen(fs::absolute(library).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    throw InputError(detail::format("{}: cannot be loaded as a shared library: {}", library.string(), dlerror()));
  check_version(handle, library);
  Interface f{};
  find(handle, library, "bs_model_construct", f.model_construct);
  find(handle, library, "bs_model_destruct", f.model_destruct);
  find(handle, library, "bs_free_error_msg", f.free_error_msg);
  find(handle, library, "bs_model_info", f.model_info);
  find(handle, library, "bs_param_names", f.param_names);
  find(handle, library, "bs_param_unc_names", f.param_unc_names);
  find(handle, library, "bs_param_num", f.param_num);
  find(handle, library, "bs_param_unc_num", f.param_unc_num);
  find(handle, library, "bs_param_constrain", f.param_constrain);
  find(handle, library, "bs_log_density", f.log_density);
  find(handle, library, "bs_log_density_gradient", f.log_density_gradient);
  find(handle, library, "bs_rng_construct", f.rng_construct);
  find(handle, library, "bs_rng_destruct", f.rng_destruct);
  find(handle, library, "bs_set_print_callback", f.set_print_callback);
  f.param_unconstrain = reinterpret_cast<decltype(f.param_unconstrain)>(dlsym(handle, "bs_param_unconstrain"));
  return f;
}

// Splits "mu,theta.1,theta.2"; an empty text has no pieces.
std::vector<std::string> split(std::string_view list) {
  std::vector<std::string> names;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(','), list.size());
    names.emplace_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return names;
}

// The model's own words in a message such as "log_density() failed with exception: …". Up to version 2.6, BridgeStan's
// message about a model that cannot be constructed contains all of its data as well.
std::string_view own_words(std::string_view message, std::string_view data) {
  constexpr std::string_view construction = "construct(", mark = ") failed with exception: ";
  const bool repeats = message.starts_with(construction) && message.substr(construction.size()).starts_with(data);
  const std::size_t end = message.find(mark, repeats ? construction.size() + data.size() : 0);
  return end == std::string_view::npos ? message : message.substr(end + mark.size());
}

// A message that the library may have allocated.
class Message {
 public:
  explicit Message(const Interface& f) : f_(f) {}
  ~Message() {
    if (text_) f_.free_error_msg(text_);
  }
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;

  char** slot() { return &text_; }
  std::string text(std::string_view data = {}) const {
    std::string_view text = own_words(text_ ? text_ : "", data);
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
    return text.empty() ? "no reason given" : std::string(text);
  }

 private:
  const Interface& f_;
  char* text_ = nullptr;
};

// One lock for all libraries without thread support: the loader may give them the same tape.
std::mutex& one_at_a_time() {
  static std::mutex mutex;
  return mutex;
}

// A seed for generated quantities that is a function of the point alone (FNV-1a over its bits).
unsigned seed_of(std::span<const double> z) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const double x : z) {
    const auto bits = std::bit_cast<std::uint64_t>(x);
    for (int shift = 0; shift < 64; shift += 8) hash = (hash ^ ((bits >> shift) & 0xff)) * 0x100000001b3u;
  }
  return static_cast<unsigned>(hash ^ (hash >> 32));
}

class BridgeStanPosterior final : public Posterior {
 public:
  BridgeStanPosterior(const fs::path& library, const fs::path& data, const fs::path& name) : f_(open_library(library)) {
    static std::atomic<std::uint64_t> models{0};
    serial_ = ++models;
    const std::string text = data.empty() ? "" : read_data(data);
    // Whether the library supports threads is known only once there is a model, so the lock is always taken here.
    const std::lock_guard lock(one_at_a_time());
    Message ignored(f_), message(f_);
    f_.set_print_callback([](const char*, std::size_t) {}, ignored.slot());
    model_ = f_.model_construct(data.empty() ? nullptr : text.c_str(), 1, message.slot());
    if (!model_) throw InputError(detail::format("{}: {}", complaining(name, data), message.text(text)));
    try {
      read_shape(name);
    } catch (...) {
      f_.model_destruct(model_);
      throw;
    }
  }
  ~BridgeStanPosterior() override {
    const std::lock_guard lock(one_at_a_time());
    f_.model_destruct(model_);
  }
  BridgeStanPosterior(const BridgeStanPosterior&) = delete;
  BridgeStanPosterior& operator=(const BridgeStanPosterior&) = delete;

  int dimension() const override { return static_cast<int>(coordinates_.size()); }
  const std::vector<std::string>& names() const override { return names_; }
  const std::vector<std::string>& coordinate_names() const override { return coordinates_; }
  std::size_t parameter_count() const override { return parameters_; }

  void constrain(std::span<const double> z, std::span<double> natural) const override {
    const auto lock = guard();
    prepare_thread(z);
    Message message(f_);
    const bool generates = transformed_ < names_.size();  // a generator takes longer than the values of a small model
    Generator* const generator = generates ? f_.rng_construct(seed_of(z), message.slot()) : nullptr;
    if (generates && !generator) throw Error(message.text());
    const bool done =
        (generates && write(z, natural, true, true, generator)) || write(z, natural, true, false, generator);
    const int status =
        done ? 0 : f_.param_constrain(model_, false, false, z.data(), natural.data(), generator, message.slot());
    if (!done) std::fill(natural.begin() + static_cast<std::ptrdiff_t>(parameters_), natural.end(), NAN);
    if (generator) f_.rng_destruct(generator);
    if (status != 0) throw Error(message.text());
  }

  void unconstrain(std::span<const double> natural, std::span<double> z) const override {
    if (!f_.param_unconstrain)
      throw InputError(
          "the compiled model has no function bs_param_unconstrain, which maps values on the natural scale to "
          "unconstrained ones: compile the model again, or give unconstrained values");
    const auto lock = guard();
    Message message(f_);
    if (f_.param_unconstrain(model_, natural.data(), z.data(), message.slot()) != 0) throw InputError(message.text());
  }

  const std::string& version() const { return stan_version_; }
  std::string complaint() const override {
    const std::lock_guard lock(complaint_mutex_);
    return complaint_;
  }

 protected:
  void compute(MatrixView<const double> z, Want want, std::span<double> value,
               MatrixView<double> gradient) const override {
    const auto lock = guard();
    for (int chain = 0; chain < z.cols(); ++chain) {
      prepare_thread(z.column(chain));
      Message message(f_);
      double result = -infinity;
      // propto false: keep constants; jacobian true: the density of the unconstrained coordinates.
      const int status = wants_gradient(want)
                             ? f_.log_density_gradient(model_, false, true, z.column(chain).data(), &result,
                                                       gradient.column(chain).data(), message.slot())
                             : f_.log_density(model_, false, true, z.column(chain).data(), &result, message.slot());
      if (status != 0) {
        result = -infinity;
        if (wants_gradient(want)) std::fill(gradient.column(chain).begin(), gradient.column(chain).end(), 0.0);
        keep(message);
      }
      if (wants_value(want)) value[chain] = result;
    }
  }

 private:
  static std::string read_data(const fs::path& data) {
    const std::string text = read_file(data);
    if (text.find_first_not_of(" \t\r\n") == std::string::npos)
      throw InputError(detail::format("{}: is empty; expected a JSON object with the model's data", data.string()));
    if (const std::size_t at = text.find('\0'); at != std::string::npos)
      throw InputError(
          detail::format("{}: byte {} is NUL; expected a JSON object with the model's data", data.string(), at));
    return text;
  }
  static std::string complaining(const fs::path& name, const fs::path& data) {
    return data.empty() ? name.string() + ": the model was given no data (--data FILE.json) and says"
                        : data.string() + ": the model says";
  }

  void read_shape(const fs::path& name) {
    const std::string_view info = f_.model_info(model_);
    threads_ = info.find("STAN_THREADS=true") != std::string_view::npos;
    constexpr std::string_view mark = "\nStan version: ";
    if (const std::size_t at = info.find(mark); at != std::string_view::npos) {
      const std::string_view rest = info.substr(at + mark.size());
      stan_version_ = rest.substr(0, rest.find_first_not_of("0123456789."));
    }
    names_ = split(f_.param_names(model_, true, true));
    coordinates_ = split(f_.param_unc_names(model_));
    parameters_ = static_cast<std::size_t>(f_.param_num(model_, false, false));
    transformed_ = static_cast<std::size_t>(f_.param_num(model_, true, false));
    if (f_.param_unc_num(model_) == 0)
      throw InputError(detail::format("{}: the model has no parameters: there is nothing to fit", name.string()));
    const bool sound = coordinates_.size() == static_cast<std::size_t>(f_.param_unc_num(model_)) &&
                       names_.size() == static_cast<std::size_t>(f_.param_num(model_, true, true)) &&
                       parameters_ <= transformed_ && transformed_ <= names_.size();
    if (!sound) throw InputError(detail::format("{}: the model's names and counts do not agree", name.string()));
  }

  std::unique_lock<std::mutex> guard() const {
    return threads_ ? std::unique_lock<std::mutex>() : std::unique_lock<std::mutex>(one_at_a_time());
  }

  // Up to BridgeStan 2.6.1 only a gradient creates a thread's tape, so each thread must compute one first.
  void prepare_thread(std::span<const double> z) const {
    thread_local std::vector<std::uint64_t> prepared;
    if (std::find(prepared.begin(), prepared.end(), serial_) != prepared.end()) return;
    Message message(f_);
    double ignored = 0;
    std::vector<double> gradient(z.size());
    f_.log_density_gradient(model_, false, true, z.data(), &ignored, gradient.data(), message.slot());
    prepared.push_back(serial_);
  }

  // Writes the parameters and, if asked for, transformed parameters and generated quantities; the others become NaN.
  // Returns false if the model throws.
  bool write(std::span<const double> z, std::span<double> natural, bool transformed, bool generated,
             Generator* generator) const {
    std::fill(natural.begin(), natural.end(), NAN);
    Message message(f_);
    const int status =
        f_.param_constrain(model_, transformed, generated, z.data(), natural.data(), generator, message.slot());
    if (status != 0) return false;
    if (!generated) std::fill(natural.begin() + static_cast<std::ptrdiff_t>(transformed_), natural.end(), NAN);
    return true;
  }

  void keep(const Message& message) const {
    if (complained_.exchange(true)) return;
    const std::lock_guard lock(complaint_mutex_);
    complaint_ = message.text();
  }

  Interface f_;
  Model* model_ = nullptr;
  std::uint64_t serial_ = 0;  // tells models apart for prepare_thread
  bool threads_ = false;      // the library was built with STAN_THREADS
  std::string stan_version_;
  std::vector<std::string> names_, coordinates_;
  std::size_t parameters_ = 0, transformed_ = 0;  // counts of names without transformed parameters, and with them
  mutable std::atomic<bool> complained_{false};
  mutable std::mutex complaint_mutex_;
  mutable std::string complaint_;
};

}  // namespace

std::unique_ptr<Posterior> load_bridgestan(const fs::path& library, const fs::path& data, const fs::path& name) {
  return std::make_unique<BridgeStanPosterior>(library, data, name.empty() ? library : name);
}

std::string stan_version(const Posterior& posterior) {
  const auto* const model = dynamic_cast<const BridgeStanPosterior*>(&posterior);
  return model ? model->version() : "";
}

}  // namespace hone
