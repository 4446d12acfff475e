// What one gradient of a compiled Stan model costs on one thread: the least of 200 means of many calls.
//   bench_stan_gradient MODEL.so DATA.json
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <vector>

namespace {

double processor_seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

template <class Call>
double nanoseconds_of(const Call& call) {
  double best = 1e300;
  int calls = 20;
  for (int repeat = 0; repeat < 200; ++repeat) {
    const double begun = processor_seconds();
    for (int i = 0; i < calls; ++i) call();
    const double seconds = processor_seconds() - begun;
    best = std::min(best, 1e9 * seconds / calls);
    if (seconds < 5e-4) calls *= 2;
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  void* const library = argc == 3 ? dlopen(argv[1], RTLD_NOW) : nullptr;
  if (!library) {
    std::fprintf(stderr, "%s\n", argc == 3 ? dlerror() : "usage: bench_stan_gradient MODEL.so DATA.json");
    return 2;
  }
  const auto construct =
      reinterpret_cast<void* (*)(const char*, unsigned, char**)>(dlsym(library, "bs_model_construct"));
  const auto size = reinterpret_cast<int (*)(const void*)>(dlsym(library, "bs_param_unc_num"));
  const auto gradient = reinterpret_cast<int (*)(const void*, bool, bool, const double*, double*, double*, char**)>(
      dlsym(library, "bs_log_density_gradient"));
  const auto density = reinterpret_cast<int (*)(const void*, bool, bool, const double*, double*, char**)>(
      dlsym(library, "bs_log_density"));
  char* error = nullptr;
  void* const model = construct(argv[2], 1, &error);
  if (!model) {
    std::fprintf(stderr, "%s\n", error);
    return 2;
  }
  std::vector<double> z(static_cast<std::size_t>(size(model))), of_z(z.size());
  for (std::size_t i = 0; i < z.size(); ++i) z[i] = 0.1 * (static_cast<double>(i * 7 % 5) - 2);
  double value = 0;
  std::printf("gradient %.0f ns, value alone %.0f ns\n",
              nanoseconds_of([&] { gradient(model, false, true, z.data(), &value, of_z.data(), &error); }),
              nanoseconds_of([&] { density(model, false, true, z.data(), &value, &error); }));
}
