#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "hone/base/statistics.hpp"

namespace hone {

using Json = nlohmann::ordered_json;

// JSON has neither NaN nor infinity: both are written as null.
inline Json json_of(const Estimate& estimate) { return {{"mean", estimate.mean}, {"se", estimate.se}}; }

// Parses one of our files. Leaves out anything nested deeper than we write, because copying and printing recurse that
// deep. Text that is not JSON gives a discarded value.
inline Json parse_json(std::string_view text) {
  constexpr int deepest = 32;
  const auto shallow = [](int depth, Json::parse_event_t, Json&) { return depth <= deepest; };
  return Json::parse(text.begin(), text.end(), shallow, false);
}

}  // namespace hone
