#pragma once

#include <span>
#include <string>
#include <vector>

#include "app/report/table1.hpp"
#include "app/run/paper/timing.hpp"

namespace hone {

// The least-squares line y ≈ intercept + slope x.
struct Line {
  double intercept = 0, slope = 0;
  double r_squared = 0;          // the share of y's variance that the line explains
  double largest_deviation = 0;  // relative to the line
};
Line fit_line(std::span<const double> x, std::span<const double> y);

// Reads the timed points of Figure 3; writes fig3.md, figures/fig3.svg with fig3.csv and its gnuplot script.
std::string report_fig3(const std::vector<Fig3Point>& points, const ReportContext& context);

}  // namespace hone
