#include <cmath>

#include "bench/calibration/cases.hpp"

namespace hone::calibration {

double Simulation::normal() {
  double x = 0;
  random_.normals({Purpose::synthesize, at_++}, {&x, 1});
  return x;
}

double Simulation::uniform() {
  double x = 0;
  random_.uniforms({Purpose::synthesize, at_++}, {&x, 1});
  return x;
}

std::vector<double> Simulation::normals(std::size_t count) {
  std::vector<double> x(count);
  for (double& value : x) value = normal();
  return x;
}

double Simulation::poisson(double mean) {
  double count = 0, product = uniform();
  for (const double end = std::exp(-mean); product > end; product *= uniform()) ++count;
  return count;
}

}  // namespace hone::calibration
