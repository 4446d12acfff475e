#include "hone/objective/li2017.hpp"

#include "hone/objective/terms.hpp"

namespace hone {

void Li2017::add_ascent(const Family& family, const Evidence& evidence, std::span<double> gradient) {
  add_refined_score(family, evidence, 1, coefficient_, gradient);
}

}  // namespace hone
