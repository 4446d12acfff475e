#include "hone/fit/shared_searches.hpp"

#include <algorithm>

#include "hone/base/error.hpp"
#include "hone/target/whitened.hpp"

namespace hone {
namespace {

void put(Bytes& to, MatrixView<const double> matrix) {
  to.put(matrix.rows());
  to.put_list(matrix.flat());
}

Matrix<double> take_matrix(Bytes& from) {
  const int rows = from.take<int>();
  const std::vector<double> values = from.take_list<double>();
  Matrix<double> matrix(rows, rows == 0 ? 0 : static_cast<int>(values.size()) / rows);
  std::ranges::copy(values, matrix.view().flat().begin());
  return matrix;
}

// What a search makes: dense, or a factored L with b = 1.
void put(Bytes& to, const Whitening& whitening) {
  to.put_list(whitening.mean());
  to.put(whitening.is_dense());
  if (whitening.is_dense()) return to.put_list(std::span<const double>(whitening.packed_lower()));
  to.put_list(whitening.a());
  put(to, whitening.u());
  to.put_list(whitening.r());
}

Whitening take_whitening(Bytes& from) {
  std::vector<double> mean = from.take_list<double>();
  if (from.take<bool>()) return Whitening::dense(std::move(mean), from.take_list<double>());
  std::vector<double> a = from.take_list<double>();
  Matrix<double> u = take_matrix(from);
  return Whitening::low_rank(std::move(mean), std::move(a), std::move(u), from.take_list<double>());
}

void put(Bytes& to, const std::optional<LocalNormal>& local) {
  to.put(local.has_value());
  if (!local) return;
  put(to, local->whitening);
  to.put(local->elbo);
  to.put_list(std::span<const double>(local->start));
  to.put_list(std::span<const double>(local->end));
  to.put(local->value);
  to.put(local->converged);
}

std::optional<LocalNormal> take_normal(Bytes& from) {
  if (!from.take<bool>()) return {};
  LocalNormal local;
  local.whitening = take_whitening(from);
  local.elbo = from.take<double>();
  local.start = from.take_list<double>();
  local.end = from.take_list<double>();
  local.value = from.take<double>();
  local.converged = from.take<bool>();
  return local;
}

struct Job {
  StartConfig config;
  std::uint64_t seed = 0;
  Matrix<double> init, at;
  std::optional<Whitening> about;
};

Bytes bytes_of(const StartConfig& config, std::uint64_t seed) {
  Bytes job;
  job.put(config.starts);
  job.put(config.first);
  job.put(config.radius);
  job.put(config.shape);
  job.put(seed);
  put(job, config.init);
  put(job, config.at);
  job.put(config.about != nullptr);
  if (config.about) put(job, *config.about);
  return job;
}

Job job_of(Bytes bytes) {
  Job job;
  job.config.starts = bytes.take<int>();
  job.config.first = bytes.take<std::uint32_t>();
  job.config.radius = bytes.take<double>();
  job.config.shape = bytes.take<Shape>();
  job.seed = bytes.take<std::uint64_t>();
  job.init = take_matrix(bytes);
  job.at = take_matrix(bytes);
  if (bytes.take<bool>()) job.about = take_whitening(bytes);
  return job;
}

// What the searches of all ranks found, on all ranks.
struct Results {
  std::vector<std::optional<LocalNormal>> found;
  std::string failure;         // of a search; empty: none
  bool stopped = false;        // a search was asked to stop
  std::int64_t by_others = 0;  // points
};

// All ranks call it. An InputError is about a point that the user gave and concerns all ranks, as Stopped does. Each
// rank sends its part even then, because the others wait for it.
Results search_together(const Target& target, const StartConfig& config, std::uint64_t seed, Ranks& ranks, Team& team) {
  const CountedTarget counted(target);
  std::vector<std::optional<LocalNormal>> found;
  std::string failure;
  bool stopped = false;
  try {
    found = search_from(counted, config, PhiloxSource(seed), share_of(config.starts, &ranks), team);
  } catch (const InputError& error) {
    failure = error.what();
  } catch (const Stopped&) {
    stopped = true;
  }
  Bytes own;
  own.put(counted.count());
  own.put(failure);
  own.put(stopped);
  own.put(found.size());
  for (const auto& local : found) put(own, local);
  std::vector<std::size_t> sizes(static_cast<std::size_t>(ranks.size())), bounds = {0};
  sizes[static_cast<std::size_t>(ranks.rank())] = own.bytes().size();
  gather_shares<std::size_t>(&ranks, sizes, ranks.size(), Patience::unlimited);  // models may be slow
  for (const std::size_t size : sizes) bounds.push_back(bounds.back() + size);
  std::vector<std::byte> all(bounds.back());
  std::ranges::copy(own.bytes(),
                    all.begin() + static_cast<std::ptrdiff_t>(bounds[static_cast<std::size_t>(ranks.rank())]));
  ranks.gather(all, bounds, Patience::unlimited);
  Bytes of_all(std::move(all));
  Results results;
  for (int rank = 0; rank < ranks.size(); ++rank) {
    const auto points = of_all.take<std::int64_t>();
    if (rank != ranks.rank()) results.by_others += points;
    const std::string why = of_all.take_text();
    if (results.failure.empty()) results.failure = why;
    results.stopped |= of_all.take<bool>();
    for (auto left = of_all.take<std::size_t>(); left > 0; --left) results.found.push_back(take_normal(of_all));
  }
  return results;
}

}  // namespace

std::vector<LocalNormal> find_local_normals(const Target& target, const StartConfig& config, std::uint64_t seed,
                                            const SharedPosterior& shared) {
  if (config.starts < 1) throw InputError("the number of starts must be at least 1");
  Results results;
  shared.together(bytes_of(config, seed),
                  [&](Ranks& ranks, Team& team) { results = search_together(target, config, seed, ranks, team); });
  target.evaluated_elsewhere(results.by_others);
  if (!results.failure.empty()) throw InputError(results.failure);
  if (results.stopped) throw Stopped();
  return found_by(std::move(results.found), config);
}

void search_for_rank_0(const Target& target, Ranks& ranks, Team& team, Bytes bytes) {
  Job job = job_of(std::move(bytes));
  job.config.init = job.init;
  job.config.at = job.at;
  if (job.about) job.config.about = &*job.about;
  search_together(target, job.config, job.seed, ranks, team);
}

}  // namespace hone
