#include <fmt/format.h>

#include <memory>

#include "app/cli/commands.hpp"
#include "app/cli/flags.hpp"
#include "app/run/iteration_bench.hpp"

namespace hone {
namespace {

struct BenchCommand {
  explicit BenchCommand(CLI::App& command) : flags(command, settings, ConfigFlag::none) {
    command.add_flag("--json", json, "print JSON");
  }

  void run() {
    flags.apply();
    const IterationBench b = measured();
    if (json) {
      fmt::print("{}", b.to_json());
      return;
    }
    const std::string where = b.engine == "cpu" ? fmt::format("{} threads at level {}", b.threads, b.level) : b.device;
    fmt::print("{}, {} objective, t = {}, {}, {}\n", b.model, b.objective, b.steps, b.precision, where);
    fmt::print("  {:.0f} µs per iteration (median of nine repeats, {} iterations in all)\n", b.us_per_iteration,
               b.iterations);
    if (b.runs > 1)
      fmt::print("  for each of {} runs {}: an iteration of all takes {:.0f} µs\n", b.runs,
                 b.engine == "cpu" ? "in turn" : "side by side", b.us_per_iteration * b.runs);
    if (b.engine != "cpu") {
      fmt::print("  {:.1f} GFLOP/s\n", b.gflops);
      return;
    }
    fmt::print("  {:.1f} GFLOP/s, {:.1f} % of the peak of {:.1f} (measured here by {} fused multiply-adds)\n", b.gflops,
               100 * b.fraction_of_peak, b.peak_gflops, b.bf16_share > 0 ? "float32 and bf16 in this mix" : "float32");
    fmt::print("  {:.1f} % of {:.1f}, the sustained float32 rate of {}, measured for 0.05 s before and after\n",
               100 * b.gflops / b.peak_together_gflops, b.peak_together_gflops,
               b.threads == 1 ? "one thread" : "all threads together");
  }

  IterationBench measured() const {
    try {
      return bench_iteration(config);
    } catch (const KeyError& error) {
      throw settings.located(error);
    }
  }

  IterationBenchConfig config;
  Settings settings = iteration_bench_settings(config);
  SettingFlags flags;
  bool json = false;
};

}  // namespace

void add_bench_command(CLI::App& program) {
  CLI::App* command = program.add_subcommand("bench", "Measure speed on this machine");
  command->require_subcommand(1);
  CLI::App* iteration = command->add_subcommand("iteration", "Time an iteration of training on synthetic data");
  const auto state = std::make_shared<BenchCommand>(*iteration);
  iteration->callback([state] { state->run(); });
}

}  // namespace hone
