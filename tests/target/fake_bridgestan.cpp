// A small hand-written library with BridgeStan's C interface, built in several ways (tests/CMakeLists.txt) to stand
// for libraries that tests cannot build. Model: mu ~ N(0, 1), tau ~ Exponential(1) as log tau; twice_tau is a
// transformed parameter, noise a generated quantity. It throws where mu > 5 and has no density where mu < −5;
// twice_tau throws where tau > e³, noise where mu > 4. Data, where given, must be a text that begins with '{'.
// FAKE_NOWHERE: it throws everywhere. FAKE_IMPROPER: mu has no prior. FAKE_SLOW: a gradient
// takes 2 ms, and by the environment variable FAKE_PAUSE that number of microseconds longer. Messages are worded as
// BridgeStan's; FAKE_THREADS stands for an older version too, whose message repeats all data and whose param_constrain
// returns 1 where it fails.
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>

#define PUBLIC extern "C" __attribute__((visibility("default")))

// Faults of the caller, which tests look at.
PUBLIC std::atomic<int> fake_overlaps, fake_without_tape, fake_messages;
std::atomic<int> fake_overlaps{0}, fake_without_tape{0}, fake_messages{0};

namespace {

thread_local bool tape = false;
std::atomic<int> inside{0};

struct Entry {
  Entry() {
    if (inside++ > 0) ++fake_overlaps;
    usleep(20);  // long enough for another thread to come
  }
  ~Entry() { --inside; }
};

int fail(char** error, const std::string& call, const char* reason) {
  const std::string text = call + " failed with exception: " + reason + "\n";
  *error = static_cast<char*>(std::malloc(text.size() + 1));
  std::strcpy(*error, text.c_str());
  ++fake_messages;
  return -1;
}

}  // namespace

#if !defined(FAKE_VERSION_1)
PUBLIC int bs_major_version;
int bs_major_version = FAKE_MAJOR;
#endif

struct bs_model {
  int dummy;
};
struct bs_rng {
  unsigned seed;
};

PUBLIC bs_model* bs_model_construct(const char* data, unsigned, char** error) {
#if defined(FAKE_THREADS)
  const std::string call = std::string("construct(") + (data ? data : "NULL") + ", 1)";
#else
  const std::string call = "construct()";
#endif
  if (data && data[0] != '{') {
    fail(error, call, "Error in JSON parsing at offset 0");
    return nullptr;
  }
#if defined(FAKE_NEEDS_DATA)
  if (!data) {
    fail(error, call, "variable does not exist; variable name=J; base type=int");
    return nullptr;
  }
#endif
  return new bs_model{0};
}
PUBLIC void bs_model_destruct(bs_model* m) { delete m; }
PUBLIC void bs_free_error_msg(char* message) {
  --fake_messages;
  std::free(message);
}
PUBLIC const char* bs_name(const bs_model*) { return "fake"; }
#if !defined(FAKE_PARTLY)
PUBLIC const char* bs_model_info(const bs_model*) {
#if defined(FAKE_THREADS)
  return "BridgeStan version: 2.5.0\nStan version: 2.34.1\nStan C++ Defines:\n\tSTAN_THREADS=true\n";
#else
  return "Stan C++ Defines:\n\tSTAN_THREADS=false\n";
#endif
}
#endif
#if defined(FAKE_EMPTY)
PUBLIC const char* bs_param_names(const bs_model*, bool, bool) { return ""; }
PUBLIC const char* bs_param_unc_names(const bs_model*) { return ""; }
PUBLIC int bs_param_num(const bs_model*, bool, bool) { return 0; }
PUBLIC int bs_param_unc_num(const bs_model*) { return 0; }
#else
PUBLIC const char* bs_param_names(const bs_model*, bool tp, bool gq) {
  return tp ? (gq ? "mu,tau,twice_tau,noise" : "mu,tau,twice_tau") : (gq ? "mu,tau,noise" : "mu,tau");
}
PUBLIC const char* bs_param_unc_names(const bs_model*) { return "mu,tau"; }
PUBLIC int bs_param_num(const bs_model*, bool tp, bool gq) { return 2 + tp + gq; }
PUBLIC int bs_param_unc_num(const bs_model*) { return 2; }
#endif

PUBLIC int bs_param_constrain(const bs_model*, bool tp, bool gq, const double* z, double* x, bs_rng* rng,
                              char** error) {
  const Entry entry;
  const auto refuse = [error](const char* reason) {
    fail(error, "param_constrain()", reason);
#if defined(FAKE_THREADS)
    return 1;
#else
    return -1;
#endif
  };
  if (!tape) ++fake_without_tape;
  if (!(std::abs(z[0]) < 100)) return refuse("mu is out of all bounds");
  *x++ = z[0];
  *x++ = std::exp(z[1]);
  if (tp && z[1] > 3) return refuse("twice_tau is too large");
  if (tp) *x++ = 2 * std::exp(z[1]);
  if (gq && z[0] > 4) return refuse("noise cannot be made");
  if (gq) *x++ = rng->seed;
  return 0;
}

#if defined(FAKE_THREADS)  // the other libraries stand for those that lack it
PUBLIC int bs_param_unconstrain(const bs_model*, const double* x, double* z, char** error) {
  const Entry entry;
  if (!(x[1] > 0)) return fail(error, "param_unconstrain()", "tau is not positive");
  z[0] = x[0];
  z[1] = std::log(x[1]);
  return 0;
}
#endif

PUBLIC int bs_log_density_gradient(const bs_model*, bool propto, bool jacobian, const double* z, double* value,
                                   double* gradient, char** error) {
  const Entry entry;
  tape = true;
#if defined(FAKE_SLOW)
  usleep(2000);
#endif
  if (const char* pause = std::getenv("FAKE_PAUSE")) usleep(static_cast<useconds_t>(std::atoi(pause)));
#if defined(FAKE_NOWHERE)
  return fail(error, "log_density_gradient()", "sigma[3] is -2, but must be positive (in 'fake', line 4)");
#elif defined(FAKE_IMPROPER)
  *value = -std::exp(z[1]) + (jacobian ? z[1] : 0);
  gradient[0] = 0;
  gradient[1] = -std::exp(z[1]) + (jacobian ? 1 : 0);
  return 0;
#endif
  if (z[0] > 5) return fail(error, "log_density_gradient()", "mu must not exceed 5 (in 'fake', line 7)");
  *value = -0.5 * z[0] * z[0] - std::exp(z[1]) + (jacobian ? z[1] : 0) - (propto ? 0 : 0.9189385332046727);
  if (z[0] < -5) *value = -std::numeric_limits<double>::infinity();
  gradient[0] = -z[0];
  gradient[1] = -std::exp(z[1]) + (jacobian ? 1 : 0);
  return 0;
}

PUBLIC int bs_log_density(const bs_model* m, bool propto, bool jacobian, const double* z, double* value, char** error) {
  if (!tape) ++fake_without_tape;
  double unused[2];
  return bs_log_density_gradient(m, propto, jacobian, z, value, unused, error);
}

PUBLIC bs_rng* bs_rng_construct(unsigned seed, char**) { return new bs_rng{seed}; }
PUBLIC void bs_rng_destruct(bs_rng* rng) { delete rng; }
PUBLIC int bs_set_print_callback(void (*)(const char*, std::size_t), char**) { return 0; }
