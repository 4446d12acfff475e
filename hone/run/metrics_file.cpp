#include "hone/run/metrics_file.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <sstream>
#include <string>

namespace hone {
namespace {

constexpr auto header = "iteration,seconds,elbo,elbo_se,vcd,vcd_se,acceptance,step_size,rejected_nonfinite";

}  // namespace

MetricsFile::MetricsFile(const std::filesystem::path& path, std::uint32_t kept) {
  std::string content = std::string(header) + "\n";
  if (kept > 0 && std::filesystem::exists(path)) {
    std::istringstream lines(read_file(path));
    std::string line;
    std::getline(lines, line);  // the header
    while (std::getline(lines, line) && !lines.eof()) {  // a row without its end was cut off by a crash
      unsigned long iteration = 0;
      double seconds = 0;
      if (std::sscanf(line.c_str(), "%lu,%lf,", &iteration, &seconds) != 2 || iteration > kept) break;
      content += line + "\n";
      seconds_ = seconds;
    }
  }
  write_file(path, content);
  file_.emplace(path);
}

void MetricsFile::row(std::uint32_t iteration, double seconds, const TrainMetrics& metrics, double step_size) {
  const Estimate elbo = metrics.elbo.estimate(), vcd = metrics.vcd.estimate();
  std::string row = fmt::format("{},{:.3f},{:.8g},{:.3g},", iteration, seconds, elbo.mean, elbo.se);
  if (metrics.vcd.count() > 0)
    row += fmt::format("{:.8g},{:.3g},{:.4f},{:.6g},", vcd.mean, vcd.se, metrics.acceptance.mean(), step_size);
  else
    row += ",,,,";
  file_->row(row + fmt::format("{}", metrics.rejected_nonfinite));
}

}  // namespace hone
