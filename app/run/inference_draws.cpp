// Reads the draws of a NetCDF-4 file in ArviZ's layout.
#include <fmt/format.h>
#include <netcdf.h>

#include "app/run/draws_file.hpp"
#include "hone/base/error.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;

class Reader {
 public:
  explicit Reader(const fs::path& file) : file_(file) {
    if (const int status = nc_open(file.c_str(), NC_NOWRITE, &id_); status != NC_NOERR)
      throw InputError(fmt::format("{}: cannot be read as NetCDF: {}", file.string(), nc_strerror(status)));
    if (nc_inq_grp_ncid(id_, "posterior", &group_) != NC_NOERR) {
      nc_close(id_);
      throw InputError(fmt::format("{}: has no group 'posterior'; expected a file of ArviZ's", file.string()));
    }
  }
  ~Reader() { nc_close(id_); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  GivenDraws draws();

 private:
  struct Shape {
    std::string name;
    std::vector<std::size_t> dims;  // of chain, draw, and its own
  };
  void ok(int status) const {
    if (status != NC_NOERR) throw InputError(fmt::format("{}: damaged: {}", file_.string(), nc_strerror(status)));
  }
  bool shape_of(int variable, Shape& shape) const;

  fs::path file_;
  int id_ = 0, group_ = 0;
};

// False if the variable is no parameter: not numbers, or its first dimensions are not chain and draw.
bool Reader::shape_of(int variable, Shape& shape) const {
  char name[NC_MAX_NAME + 1] = {};
  int count = 0, dimensions[NC_MAX_VAR_DIMS];
  nc_type type = NC_NAT;
  ok(nc_inq_var(group_, variable, name, &type, &count, dimensions, nullptr));
  shape = {name, {}};
  for (int k = 0; k < count; ++k) {
    std::size_t length = 0;
    ok(nc_inq_dim(group_, dimensions[k], name, &length));
    if (k < 2 && std::string(name) != (k == 0 ? "chain" : "draw")) return false;
    shape.dims.push_back(length);
  }
  return count >= 2 && type != NC_CHAR && type != NC_STRING;
}

// "theta.2.3" of the element at `place`, the last index fastest.
std::string element_name(const std::string& name, const std::vector<std::size_t>& dims, std::size_t place) {
  std::string indices;
  for (std::size_t k = dims.size(); k-- > 2;) {
    indices = fmt::format(".{}{}", place % dims[k] + 1, indices);
    place /= dims[k];
  }
  return name + indices;
}

GivenDraws Reader::draws() {
  int count = 0;
  ok(nc_inq_nvars(group_, &count));
  GivenDraws result;
  std::vector<std::vector<double>> columns;
  std::size_t draws = 0;
  for (int variable = 0; variable < count; ++variable) {
    Shape shape;
    if (!shape_of(variable, shape)) continue;
    draws = shape.dims[0] * shape.dims[1];
    std::size_t size = 1;
    for (std::size_t k = 2; k < shape.dims.size(); ++k) size *= shape.dims[k];
    std::vector<double> values(draws * size);
    ok(nc_get_var_double(group_, variable, values.data()));
    for (std::size_t place = 0; place < size; ++place) {
      result.names.push_back(element_name(shape.name, shape.dims, place));
      std::vector<double>& column = columns.emplace_back(draws);
      for (std::size_t i = 0; i < draws; ++i) column[i] = values[i * size + place];
    }
  }
  if (columns.empty())
    throw InputError(fmt::format("{}: group 'posterior' has no variables over chain and draw", file_.string()));
  result.values = Matrix<double>(static_cast<int>(columns.size()), static_cast<int>(draws));
  for (std::size_t k = 0; k < columns.size(); ++k)
    for (std::size_t i = 0; i < draws; ++i) result.values(static_cast<int>(k), static_cast<int>(i)) = columns[k][i];
  return result;
}

}  // namespace

GivenDraws read_inference_draws(const fs::path& file) { return Reader(file).draws(); }

}  // namespace hone
