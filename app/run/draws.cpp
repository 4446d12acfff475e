#include "app/run/draws.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <optional>
#include <set>
#include <string_view>

#include "app/run/json.hpp"
#include "hone/base/error.hpp"
#include "hone/base/file.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;

// "K.2.3" as "K" and {2, 3}; nothing if the rest after the first point is not a list of numbers from 1.
struct IndexedName {
  std::string base;
  std::vector<std::size_t> indices;
};

IndexedName split_name(const std::string& name) {
  IndexedName result{name.substr(0, name.find('.')), {}};
  for (std::size_t at = result.base.size(); at < name.size();) {
    std::size_t index = 0;
    const char* const begin = name.data() + at + 1;
    const auto [end, error] = std::from_chars(begin, name.data() + name.size(), index);
    if (error != std::errc() || index == 0 || (end != name.data() + name.size() && *end != '.')) return {name, {}};
    result.indices.push_back(index);
    at = static_cast<std::size_t>(end - name.data());
  }
  return result;
}

// The elements of one base name as an array, if their indices fill a rectangle, each once.
std::optional<NamedVariable> as_array(const std::string& base, const std::vector<IndexedName>& names,
                                      const std::vector<std::size_t>& entries) {
  NamedVariable array{base, names[entries.front()].indices, std::vector<std::size_t>(entries.size(), names.size())};
  for (const std::size_t entry : entries) {
    const auto& indices = names[entry].indices;
    if (indices.size() != array.dims.size()) return std::nullopt;
    for (std::size_t d = 0; d < indices.size(); ++d) array.dims[d] = std::max(array.dims[d], indices[d]);
  }
  std::size_t size = 1;
  for (const std::size_t length : array.dims) {
    if (length > entries.size()) return std::nullopt;
    size *= length;
  }
  if (size != entries.size()) return std::nullopt;
  for (const std::size_t entry : entries) {
    std::size_t at = 0;
    for (std::size_t d = 0; d < array.dims.size(); ++d) at = at * array.dims[d] + names[entry].indices[d] - 1;
    if (array.entries[at] != names.size()) return std::nullopt;
    array.entries[at] = entry;
  }
  return array;
}

void check(const DrawTable& draws, const fs::path& path) {
  const std::size_t count = static_cast<std::size_t>(draws.values.cols());
  if (static_cast<std::size_t>(draws.values.rows()) != draws.names.size() || draws.log_p.size() != count ||
      draws.log_q.size() != count || (!draws.moves.empty() && draws.moves.size() != count) ||
      (!draws.short_chain.empty() && draws.short_chain.size() != count))
    throw Error(fmt::format("{}: the table of draws does not match its names", path.string()));
}

// A number as Stan's readers read it, to the last bit; a NaN without its sign.
void append_number(fmt::memory_buffer& text, double value) {
  fmt::format_to(std::back_inserter(text), "{}", std::isnan(value) ? std::abs(value) : value);
}

// Where CmdStan's JSON has the value of "K.2.3", of "pair:2.1" (part of a tuple) or of "z.imag". A name of another form
// is a key.
Json& place_of(Json& values, const std::string& name) {
  struct Part {
    char mark;
    std::size_t number;
  };
  const std::size_t base = std::min(name.find_first_of(".:"), name.size());
  std::vector<Part> parts;
  for (std::size_t at = base; at < name.size();) {
    const std::size_t end = std::min(name.find_first_of(".:", at + 1), name.size());
    const std::string_view text = std::string_view(name).substr(at + 1, end - at - 1);
    Part part{name[at], text == "real" ? 1u : text == "imag" ? 2u : 0u};
    const char* read = text.data() + text.size();
    if (part.number == 0) read = std::from_chars(text.data(), read, part.number).ptr;
    if (read != text.data() + text.size() || part.number == 0 || part.number > 10'000'000) return values[name];
    parts.push_back(part);
    at = end;
  }
  Json* place = &values[name.substr(0, base)];
  for (const Part& part : parts)
    place = part.mark == ':' ? &(*place)[std::to_string(part.number)] : &(*place)[part.number - 1];
  return *place;
}

// Copies the numbers of a JSON value into `array`; false if it is not a rectangular array of numbers.
bool flatten(const Json& value, std::size_t depth, DataArray& array) {
  if (value.is_number()) {
    if (depth != array.dims.size()) return false;
    array.values.push_back(value.get<double>());
    return true;
  }
  if (!value.is_array()) return false;
  if (depth == array.dims.size()) {
    if (!array.values.empty()) return false;
    array.dims.push_back(value.size());
  }
  if (array.dims[depth] != value.size()) return false;
  return std::all_of(value.begin(), value.end(), [&](const Json& entry) { return flatten(entry, depth + 1, array); });
}

}  // namespace

std::vector<NamedVariable> group_names(std::span<const std::string> names) {
  std::vector<IndexedName> parts;
  std::map<std::string, std::vector<std::size_t>> by_base;
  for (const std::string& name : names) {
    parts.push_back(split_name(name));
    by_base[parts.back().base].push_back(parts.size() - 1);
  }
  std::vector<NamedVariable> arrays;
  std::set<std::string> done;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string& base = parts[i].base;
    const auto array = as_array(base, parts, by_base[base]);
    if (!array)
      arrays.push_back({names[i], {}, {i}});
    else if (done.insert(base).second)
      arrays.push_back(*array);
  }
  return arrays;
}

void write_stan_csv(const fs::path& path, const DrawTable& draws, const std::vector<std::string>& comments,
                    const std::string& stan_version) {
  check(draws, path);
  fmt::memory_buffer text;
  const auto line = [&](std::string_view content) { fmt::format_to(std::back_inserter(text), "{}\n", content); };
  // The header that CmdStan writes for one chain of fixed_param, a sampler without adaptation. The warm-up has
  // CmdStan's default length and is not saved (CmdStanPy refuses zero).
  int version[3] = {};
  std::sscanf(stan_version.c_str(), "%d.%d.%d", &version[0], &version[1], &version[2]);
  for (int i = 0; i < 3; ++i)
    line(fmt::format("# stan_version_{} = {}", std::array{"major", "minor", "patch"}[static_cast<std::size_t>(i)],
                     version[i]));
  line("# model = hone");
  line("# method = sample (Default)");
  line("#   sample");
  line(fmt::format("#     num_samples = {}", draws.values.cols()));
  for (const char* fixed : {"#     num_warmup = 1000 (Default)", "#     save_warmup = 0 (Default)",
                            "#     thin = 1 (Default)", "#     algorithm = fixed_param", "# id = 1"})
    line(fixed);
  for (const std::string& comment : comments) line("# " + comment);
  std::string header = "lp__,log_p__,log_q__";
  if (!draws.moves.empty()) header += ",accept_stat__,divergent__,energy__";
  if (!draws.short_chain.empty()) header += ",short_chain__";
  for (const std::string& name : draws.names) header += "," + name;
  line(header);
  for (int s = 0; s < draws.values.cols(); ++s) {
    append_number(text, draws.log_p[s]);
    for (const double value : {draws.log_p[s], draws.log_q[s]}) text.push_back(','), append_number(text, value);
    if (!draws.moves.empty())
      for (const double value : {draws.moves[s].acceptance, draws.moves[s].diverged ? 1.0 : 0.0, draws.moves[s].energy})
        text.push_back(','), append_number(text, value);
    if (!draws.short_chain.empty()) fmt::format_to(std::back_inserter(text), ",{}", draws.short_chain[s]);
    for (const double value : draws.values.column(s)) text.push_back(','), append_number(text, value);
    text.push_back('\n');
  }
  for (const char* fixed : {"#", "#  Elapsed Time: 0 seconds (Warm-up)", "#"})
    line(fixed);  // readers expect these lines at the end
  write_file(path, std::string_view(text.data(), text.size()));
}

std::vector<DataArray> read_data_arrays(const fs::path& path) {
  const Json json = parse_json(read_file(path));
  std::vector<DataArray> arrays;
  if (!json.is_object()) return arrays;
  for (const auto& [name, value] : json.items()) {
    DataArray array{name, {}, {}};
    const bool sized = flatten(value, 0, array) && !array.values.empty();
    if (sized && name.find('/') == std::string::npos && !name.empty()) arrays.push_back(std::move(array));
  }
  return arrays;
}

void write_warm_start(const fs::path& folder, const WarmStart& start) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (!fs::is_directory(folder)) throw Error(fmt::format("{}: cannot create this folder", folder.string()));
  for (int chain = 0; chain < start.inits.cols(); ++chain) {
    Json inits = Json::object();
    for (int i = 0; i < start.inits.rows(); ++i) place_of(inits, start.names[i]) = start.inits(i, chain);
    write_file(folder / fmt::format("inits_{}.json", chain + 1), inits.dump(1) + "\n");
  }
  const Matrix<double>& metric = start.inverse_metric;
  const bool dense = metric.cols() > 1 || metric.rows() == 1;
  Json rows = Json::array();
  for (int i = 0; i < metric.rows(); ++i) {
    Json row = Json::array();
    for (int j = 0; dense && j < metric.cols(); ++j) row.push_back(metric(i, j));
    rows.push_back(dense ? row : Json(metric(i, 0)));
  }
  write_file(folder / "metric.json", Json{{"inv_metric", rows}}.dump(1) + "\n");
  std::string words = fmt::format("sample num_chains={} algorithm=hmc metric={} metric_file={}", start.inits.cols(),
                                  dense ? "dense_e" : "diag_e", (folder / "metric.json").string());
  if (start.step_size > 0) words += fmt::format(" stepsize={}", start.step_size);
  // With several chains, CmdStan itself looks for inits_1.json, …
  const char* const inits = start.inits.cols() == 1 ? "inits_1.json" : "inits.json";
  write_file(folder / "arguments.txt", fmt::format("{} init={}\n", words, (folder / inits).string()));
}

}  // namespace hone
