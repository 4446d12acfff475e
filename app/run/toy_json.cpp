#include <fmt/format.h>

#include "app/run/json.hpp"
#include "app/run/provenance.hpp"
#include "app/run/toy.hpp"
#include "hone/base/error.hpp"

namespace hone {
namespace {

// What was written as null is read back as NaN.
double number(const Json& value) { return value.is_null() ? std::nan("") : value.get<double>(); }

}  // namespace

std::string ToyResult::to_json() const {
  Json json = {{"target", target},         {"family", family}, {"objective", objective},
               {"alpha", alpha},           {"kernel", kernel}, {"seed", seed},
               {"iterations", iterations}, {"mean", mean},     {"sd", sd}};
  if (!weights.empty()) {
    json["weights"] = weights;
    json["component_means"] = component_means;
    json["component_sds"] = component_sds;
  }
  json["parameters"] = parameters;
  json["vcd"] = json_of(vcd);
  json["elbo"] = json_of(elbo);
  json["acceptance"] = acceptance;
  json["step_size"] = step_size;
  json["rejected_nonfinite"] = rejected_nonfinite;
  json["dropped_draws"] = dropped_draws;
  if (!trouble.empty()) json["trouble"] = trouble;
  json["seconds"] = seconds;
  json["iterations_per_second"] = iterations_per_second;
  json["machine"] = host_text();
  json["hone_version"] = hone_version();
  return json.dump(2) + "\n";
}

ToyResult ToyResult::from_json(const std::string& text, const std::filesystem::path& origin) {
  try {
    const Json json = parse_json(text);
    ToyResult r;
    for (const auto& [key, field] :
         {std::pair{"target", &r.target}, {"family", &r.family}, {"objective", &r.objective}, {"kernel", &r.kernel}})
      *field = json.at(key).get<std::string>();
    r.alpha = json.at("alpha");
    r.seed = json.at("seed");
    r.iterations = json.at("iterations");
    r.mean = json.at("mean").get<std::vector<double>>();
    r.sd = json.at("sd").get<std::vector<double>>();
    if (json.contains("weights")) {
      r.weights = json.at("weights").get<std::vector<double>>();
      r.component_means = json.at("component_means").get<std::vector<std::vector<double>>>();
      r.component_sds = json.at("component_sds").get<std::vector<std::vector<double>>>();
    }
    r.parameters = json.at("parameters").get<std::vector<double>>();
    r.vcd = {number(json.at("vcd").at("mean")), number(json.at("vcd").at("se"))};
    r.elbo = {number(json.at("elbo").at("mean")), number(json.at("elbo").at("se"))};
    r.acceptance = number(json.at("acceptance"));
    r.step_size = number(json.at("step_size"));
    r.rejected_nonfinite = json.at("rejected_nonfinite");
    r.dropped_draws = json.at("dropped_draws");
    r.trouble = json.value("trouble", "");
    r.seconds = number(json.at("seconds"));
    r.iterations_per_second = number(json.at("iterations_per_second"));
    return r;
  } catch (const Json::exception& error) {
    throw InputError(fmt::format("{}: not the summary of a toy run: {}", origin.string(), error.what()));
  }
}

}  // namespace hone
