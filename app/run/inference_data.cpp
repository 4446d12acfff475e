// The NetCDF-4 file of a fit, in the layout that ArviZ calls InferenceData: one group per kind of draws, dimensions
// (chain, draw, …) and a coordinate for each of them.
#include <fmt/format.h>
#include <netcdf.h>
#include <netcdf_mem.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <numeric>

#include "app/run/draws.hpp"
#include "app/run/posterior_run.hpp"
#include "hone/base/error.hpp"
#include "hone/base/file.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;

void ok(int status, const char* doing) {
  if (status != NC_NOERR) throw Error(fmt::format("NetCDF: {}: {}", doing, nc_strerror(status)));
}

// A file in memory: after a failed write to a disk, HDF5 would crash when the program ends. netCDF wants a name anyway.
class File {
 public:
  File() { ok(nc_create_mem("memory.nc", NC_NETCDF4, initial_size, &id_), "making a file"); }
  ~File() {
    if (open_) nc_close(id_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int id() const { return id_; }
  // Closes it.
  std::vector<std::uint8_t> bytes() {
    NC_memio memory = {};
    open_ = false;
    ok(nc_close_memio(id_, &memory), "making a file");
    const std::unique_ptr<void, decltype(&std::free)> owned(memory.memory, &std::free);
    const auto* begin = static_cast<const std::uint8_t*>(memory.memory);
    return {begin, begin + memory.size};
  }

 private:
  static constexpr std::size_t initial_size = 1 << 20;  // it grows
  int id_ = 0;
  bool open_ = true;
};

void put_text(int group, const std::string& name, const std::string& text) {
  ok(nc_put_att_text(group, NC_GLOBAL, name.c_str(), text.size(), text.c_str()), name.c_str());
}

void put_attributes(int group, const std::map<std::string, std::string>& attributes) {
  for (const auto& [name, text] : attributes) put_text(group, name, text);
  put_text(group, "inference_library", "hone");
}

int add_group(int file, const char* name) {
  int group = 0;
  ok(nc_def_grp(file, name, &group), name);
  return group;
}

// A dimension with the coordinate 0, 1, …
int add_dimension(int group, const std::string& name, std::size_t length) {
  int dimension = 0, coordinate = 0;
  ok(nc_def_dim(group, name.c_str(), length, &dimension), name.c_str());
  ok(nc_def_var(group, name.c_str(), NC_INT64, 1, &dimension, &coordinate), name.c_str());
  std::vector<long long> values(length);
  std::iota(values.begin(), values.end(), 0);
  ok(nc_put_var_longlong(group, coordinate, values.data()), name.c_str());
  return dimension;
}

// Adds theta_dim_0, theta_dim_1, … to `dimensions`.
void add_own_dimensions(int group, const std::string& name, const std::vector<std::size_t>& dims,
                        std::vector<int>& dimensions) {
  for (std::size_t d = 0; d < dims.size(); ++d)
    dimensions.push_back(add_dimension(group, fmt::format("{}_dim_{}", name, d), dims[d]));
}

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

enum class Numbers { real, whole };

// Whole numbers only where all values are: a generated quantity that threw is NaN.
void put_values(int group, const std::string& name, const std::vector<int>& dimensions,
                const std::vector<double>& values, Numbers numbers = Numbers::real) {
  constexpr double most = 9007199254740992;  // 2⁵³
  const bool whole = numbers == Numbers::whole &&
                     std::ranges::all_of(values, [](double x) { return std::abs(x) <= most && x == std::floor(x); });
  int variable = 0;
  ok(nc_def_var(group, name.c_str(), whole ? NC_INT64 : NC_DOUBLE, static_cast<int>(dimensions.size()),
                dimensions.data(), &variable),
     name.c_str());
  ok(nc_put_var_double(group, variable, values.data()), name.c_str());  // NetCDF converts
}

Numbers kind_of(const FitGroups& groups, const std::string& name) {
  return has(groups.integers, name) ? Numbers::whole : Numbers::real;
}

struct ChainDimensions {
  int chain, draw;
};

ChainDimensions add_chains(int group, int chains, int draws) {
  return {add_dimension(group, "chain", static_cast<std::size_t>(chains)),
          add_dimension(group, "draw", static_cast<std::size_t>(draws / chains))};
}

// The variables that `wanted` names.
template <class Wanted>
void put_draws(int group, const DrawTable& draws, int chains, const FitGroups& groups, Wanted&& wanted) {
  const int count = draws.values.cols();
  const ChainDimensions shared = add_chains(group, chains, count);
  for (const NamedVariable& array : group_names(draws.names)) {
    if (!wanted(array.name)) continue;
    std::vector<int> dimensions = {shared.chain, shared.draw};
    add_own_dimensions(group, array.name, array.dims, dimensions);
    std::vector<double> values;
    values.reserve(array.entries.size() * static_cast<std::size_t>(count));
    for (int s = 0; s < count; ++s)
      for (const std::size_t entry : array.entries) values.push_back(draws.values(static_cast<int>(entry), s));
    put_values(group, array.name, dimensions, values, kind_of(groups, array.name));
  }
}

void put_statistics(int group, const DrawTable& draws, int chains) {
  const ChainDimensions shared = add_chains(group, chains, draws.values.cols());
  put_values(group, "lp", {shared.chain, shared.draw}, draws.log_p);
  put_values(group, "log_q", {shared.chain, shared.draw}, draws.log_q);
  const int dimensions[] = {shared.chain, shared.draw};
  int variable = 0;
  if (!draws.short_chain.empty()) {
    ok(nc_def_var(group, "short_chain", NC_INT64, 2, dimensions, &variable), "short_chain");
    ok(nc_put_var_int(group, variable, draws.short_chain.data()), "short_chain");
  }
  if (draws.moves.empty()) return;
  std::vector<double> acceptance, energy;
  std::vector<signed char> diverging;
  for (const StateMove& move : draws.moves) {
    acceptance.push_back(move.acceptance);
    energy.push_back(move.energy);
    diverging.push_back(move.diverged);
  }
  put_values(group, "acceptance_rate", {shared.chain, shared.draw}, acceptance);
  if (!std::isnan(energy.front())) put_values(group, "energy", {shared.chain, shared.draw}, energy);
  ok(nc_def_var(group, "diverging", NC_BYTE, 2, dimensions, &variable), "diverging");
  ok(nc_put_att_text(group, variable, "dtype", 4, "bool"), "diverging");  // as xarray writes what it reads as bool
  ok(nc_put_var_schar(group, variable, diverging.data()), "diverging");
}

// The observed variables of the data, or the others.
void put_data(int file, const char* name, const InferenceData& data, bool observed) {
  const auto wanted = [&](const DataArray& array) { return has(data.groups.observed_data, array.name) == observed; };
  if (std::ranges::none_of(data.data, wanted)) return;
  const int group = add_group(file, name);
  for (const DataArray& array : data.data) {
    if (!wanted(array)) continue;
    std::vector<int> dimensions;
    add_own_dimensions(group, array.name, array.dims, dimensions);
    put_values(group, array.name, dimensions, array.values, kind_of(data.groups, array.name));
  }
}

void check(const DrawTable& draws, int chains) {
  const std::size_t count = static_cast<std::size_t>(draws.values.cols());
  if (static_cast<std::size_t>(draws.values.rows()) != draws.names.size() || draws.log_p.size() != count ||
      draws.log_q.size() != count || (!draws.moves.empty() && draws.moves.size() != count) ||
      (!draws.short_chain.empty() && draws.short_chain.size() != count))
    throw Error("the table of draws does not match its names");
  if (chains < 1 || draws.values.cols() == 0 || draws.values.cols() % chains != 0)
    throw InputError(fmt::format("{} draws do not divide into {} chains", draws.values.cols(), chains));
}

std::vector<std::uint8_t> bytes_of(const InferenceData& data) {
  File file;
  put_attributes(file.id(), data.attributes);
  const int posterior = add_group(file.id(), "posterior");
  put_attributes(posterior, data.attributes);
  const FitGroups& groups = data.groups;
  const auto in_posterior = [&](const std::string& name) {
    return !has(groups.log_likelihood, name) && !has(groups.posterior_predictive, name);
  };
  put_draws(posterior, data.refined, data.chains, groups, in_posterior);
  for (const auto& [name, own] :
       {std::pair{"log_likelihood", &groups.log_likelihood}, {"posterior_predictive", &groups.posterior_predictive}})
    if (!own->empty())
      put_draws(add_group(file.id(), name), data.refined, data.chains, groups,
                [own = own](const std::string& variable) { return has(*own, variable); });
  put_statistics(add_group(file.id(), "sample_stats"), data.refined, data.chains);
  put_draws(add_group(file.id(), "q"), data.q, 1, groups, in_posterior);
  put_statistics(add_group(file.id(), "q_stats"), data.q, 1);
  put_data(file.id(), "observed_data", data, true);
  put_data(file.id(), "constant_data", data, false);
  return file.bytes();
}

}  // namespace

void write_inference_data(const fs::path& path, const InferenceData& data) {
  check(data.refined, data.chains);
  check(data.q, 1);
  write_file(path, bytes_of(data));
}

void write_posterior_netcdf(const RunFolder& folder, const PosteriorRunFiles& files) {
  write_inference_data(
      folder.path() / "inference_data.nc",
      {files.draws, files.draws_q, files.chains, files.data, files.groups, {{"verdict", files.verdict}}});
}

}  // namespace hone
