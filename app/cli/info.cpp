#include <fmt/format.h>

#include <memory>

#include "app/cli/commands.hpp"
#include "app/cli/ranks.hpp"
#include "app/run/json.hpp"
#include "app/run/terminal.hpp"
#include "hone/base/cpus.hpp"
#include "hone/base/error.hpp"
#include "hone/engine/engines.hpp"
#include "hone/target/stan.hpp"
#include "hone/tensor/simd.hpp"

namespace hone {
namespace {

Json json_of(const CudaSupport& cuda) {
  Json devices = Json::array();
  for (const CudaDevice& d : cuda.devices)
    devices.push_back({{"name", d.name},
                       {"compute_capability", fmt::format("{}.{}", d.major, d.minor)},
                       {"multiprocessors", d.multiprocessors},
                       {"memory_bytes", d.memory}});
  Json json = {{"available", cuda.missing.empty()}, {"devices", devices}};
  if (!cuda.missing.empty()) json["missing"] = cuda.missing;
  return json;
}

// The Stan that compiles users' programs, or why there is none.
struct StanSupport {
  std::string used, missing;
};
StanSupport stan_support() {
  try {
    return {stan_in_use(), ""};
  } catch (const InputError& error) {
    return {"", error.what()};
  }
}

Json json_of(const StanSupport& stan) {
  Json json = {{"available", stan.missing.empty()}};
  json[stan.missing.empty() ? "used" : "missing"] = stan.missing.empty() ? stan.used : stan.missing;
  return json;
}

void print(const CudaSupport& cuda) {
  fmt::print("hone {}\n\nengine cpu\n", HONE_VERSION);
  const auto line = [](const std::string& text) { fmt::print("{}", wrapped("  ", text, terminal_width(stdout))); };
  line(fmt::format("matrix products: {}{}", name_of(simd_level()),
                   supports_bf16() ? "; also in bf16, for precision = \"bf16-trajectory\"" : ""));
  line(
      fmt::format("threads: {} by default; the environment variable HONE_PIN=all, or CPUs such as HONE_PIN=0-7, pins "
                  "them",
                  default_threads()));
  fmt::print("\nengine cuda\n");
  if (!cuda.missing.empty()) line("not available: " + cuda.missing);
  int index = 0;
  for (const CudaDevice& d : cuda.devices)
    line(fmt::format("device {}: {}, compute capability {}.{}, {} multiprocessors, {:.0f} GiB", index++, d.name,
                     d.major, d.minor, d.multiprocessors, static_cast<double>(d.memory) / (1 << 30)));
  const StanSupport stan = stan_support();
  fmt::print("\nStan models\n");
  line(stan.missing.empty() ? stan.used : stan.missing);
}

// One line per rank, if there are several.
Json json_of(const std::vector<RankFacts>& ranks) {
  Json list = Json::array();
  for (const RankFacts& rank : ranks)
    list.push_back({{"host", rank.host}, {"threads", rank.threads}, {"level", rank.level}, {"device", rank.device}});
  return list;
}
void print(const std::vector<RankFacts>& ranks) {
  if (!ranks.empty()) fmt::print("\nranks\n");
  for (std::size_t i = 0; i < ranks.size(); ++i)
    fmt::print("  rank {} on host {}: {} thread{} by default, level {}{}\n", i, ranks[i].host, ranks[i].threads,
               ranks[i].threads == 1 ? "" : "s", ranks[i].level,
               ranks[i].device.empty() ? "" : "; --engine cuda: device " + ranks[i].device);
}

}  // namespace

void add_info_command(CLI::App& program) {
  CLI::App* command =
      program.add_subcommand("info", "Show this machine's engines, devices and Stan, and why any is missing");
  const auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "print JSON");
  command->callback([json] {
    const CudaSupport cuda = cuda_support();
    if (!*json) {
      print(cuda);
      return print(rank_facts);
    }
    Json all = {{"version", HONE_VERSION},
                {"cpu", {{"level", name_of(simd_level())}, {"bf16", supports_bf16()}, {"threads", default_threads()}}},
                {"cuda", json_of(cuda)},
                {"stan", json_of(stan_support())}};
    if (!rank_facts.empty()) all["ranks"] = json_of(rank_facts);
    fmt::print("{}\n", all.dump(2));
  });
}

}  // namespace hone
