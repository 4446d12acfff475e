#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>

#include "app/cli/commands.hpp"
#include "app/run/json.hpp"
#include "app/run/loo.hpp"
#include "app/run/posterior_run.hpp"
#include "app/run/terminal.hpp"
#include "hone/base/error.hpp"

namespace hone {
namespace {

struct CompareCommand {
  std::vector<std::string> runs, verdicts;
  std::string variable;
  bool json = false;

  void run();
  void print(const std::vector<Loo>& loos, const std::vector<std::size_t>& order) const;
  Json json_of(const std::vector<Loo>& loos, const std::vector<std::size_t>& order) const;
};

Json CompareCommand::json_of(const std::vector<Loo>& loos, const std::vector<std::size_t>& order) const {
  Json list = Json::array();
  for (const std::size_t k : order) {
    const LooDifference apart = difference(loos[order.front()], loos[k]);
    list.push_back({{"run", runs[k]},
                    {"verdict", verdicts[k].empty() ? Json(nullptr) : Json(verdicts[k])},
                    {"elpd_loo", loos[k].total},
                    {"se", loos[k].se},
                    {"p_loo", loos[k].effective},
                    {"elpd_diff", apart.value},
                    {"dse", apart.se},
                    {"data", loos[k].elpd.size()},
                    {"good_k", loos[k].good_k},
                    {"bad_k", loos[k].bad()}});
  }
  return list;
}

void CompareCommand::print(const std::vector<Loo>& loos, const std::vector<std::size_t>& order) const {
  const int width = terminal_width(stdout);
  int name_width = 3;
  for (const std::string& run : runs) name_width = std::max(name_width, width_of(run));
  constexpr int numbers = 58;
  const bool apart_lines = name_width + numbers > width;  // a long path gets a line of its own
  if (apart_lines) name_width = 0;
  fmt::print("{:<{}}{:>10}{:>9}{:>9}{:>11}{:>9}{:>10}\n", "", name_width, "elpd_loo", "se", "p_loo", "elpd_diff", "dse",
             "bad k-hat");
  for (const std::size_t k : order) {
    const LooDifference apart = difference(loos[order.front()], loos[k]);
    if (apart_lines) fmt::print("{}\n", runs[k]);
    fmt::print("{:<{}}{:>10.2f}{:>9.2f}{:>9.2f}{:>11.2f}{:>9.2f}{:>10}\n", apart_lines ? "" : runs[k], name_width,
               loos[k].total, loos[k].se, loos[k].effective, apart.value, apart.se, loos[k].bad());
  }
  fmt::print(
      "\n{}",
      wrapped("",
              fmt::format("{} data. elpd_diff: how much worse a fit predicts than the first one, summed over the data; "
                          "differences below about 2 dse may be chance.",
                          loos.front().elpd.size()),
              width));
  for (const std::size_t k : order)
    if (verdicts[k] == name_of(Verdict::trust_neither))
      fmt::print("{}",
                 wrapped("warning: ",
                         fmt::format("{}: the verdict is trust-neither, so its elpd is not reliable", runs[k]), width));
  for (const std::size_t k : order)
    if (loos[k].bad() > 0)
      fmt::print("{}", wrapped("note: ",
                               fmt::format("{}: k-hat is above {:.2f} for {} data, whose elpd is not reliable", runs[k],
                                           loos[k].good_k, loos[k].bad()),
                               width));
}

void CompareCommand::run() {
  std::vector<Loo> loos;
  for (const std::string& run : runs) {
    const Json summary = read_fit_summary(run);
    const auto verdict = summary.find("verdict");
    verdicts.push_back(verdict != summary.end() && verdict->is_string() ? verdict->get<std::string>() : "");
    loos.push_back(loo_of(read_log_likelihood(run, variable)));
    if (loos.back().elpd.size() != loos.front().elpd.size())
      throw InputError(
          fmt::format("{} has log-likelihoods of {} data, {} of {}; only models of the same data can be compared",
                      runs.front(), loos.front().elpd.size(), run, loos.back().elpd.size()));
  }
  std::vector<std::size_t> order(loos.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return loos[a].total > loos[b].total; });
  if (json)
    fmt::print("{}\n", json_of(loos, order).dump(2));
  else
    print(loos, order);
}

}  // namespace

void add_compare_command(CLI::App& program) {
  CLI::App* command = program.add_subcommand(
      "compare", "Compare fits of the same data by their predictions of left-out data (PSIS-LOO)");
  const auto state = std::make_shared<CompareCommand>();
  command->add_option("run", state->runs, "folders of 'hone fit' whose models have log_lik")
      ->required()
      ->option_text("RUN ...");
  command->add_option("--log-lik", state->variable, "the variable with the log-likelihood of each datum [log_lik]")
      ->option_text("NAME");
  command->add_flag("--json", state->json, "print all numbers as JSON");
  command->footer("Example: hone compare runs/linear runs/quadratic");
  command->callback([state] { state->run(); });
}

}  // namespace hone
