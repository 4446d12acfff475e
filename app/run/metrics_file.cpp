#include "app/run/metrics_file.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <string>

namespace hone {

MetricsFile::MetricsFile(const std::filesystem::path& path, std::uint32_t kept)
    : file_(path, "iteration,seconds,elbo,elbo_se,vcd,vcd_se,acceptance,step_size,rejected_nonfinite", kept) {}

void MetricsFile::row(std::uint32_t iteration, double seconds, const TrainMetrics& metrics, double step_size) {
  const Estimate elbo = metrics.elbo.estimate(), vcd = metrics.vcd.estimate();
  std::string row = fmt::format("{},{:.3f},{:.8g},{:.3g},", iteration, seconds, elbo.mean, elbo.se);
  if (metrics.vcd.count() > 0)
    row += fmt::format("{:.8g},{:.3g},{:.4f},{:.6g},", vcd.mean, vcd.se, metrics.acceptance.mean(), step_size);
  else
    row += ",,,,";
  file_.row(row + fmt::format("{}", metrics.rejected_nonfinite));
}

ClockFile::ClockFile(const std::filesystem::path& path, std::uint32_t restored)
    : file_(path, "iteration,seconds,runs", restored) {
  double seconds = 0;
  int runs = 1;  // unless the row says otherwise
  const int read = std::sscanf(file_.last_kept().c_str(), "%*u,%lf,%d", &seconds, &runs);
  if (read >= 1 && seconds > 0) seconds_ = seconds;
  if (read == 2 && runs > 0) runs_ = runs;
}

void ClockFile::row(std::uint32_t iteration, double seconds, int runs) {
  file_.row(fmt::format("{},{:.6f},{}", iteration, seconds, runs));
  file_.sync();
}

}  // namespace hone
