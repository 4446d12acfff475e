#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "hone/base/statistics.hpp"

namespace hone {

using Json = nlohmann::ordered_json;

// Neither NaN nor an infinity is a JSON number: both are written as null.
inline Json json_of(const Estimate& estimate) { return {{"mean", estimate.mean}, {"se", estimate.se}}; }

// Reads a file of ours. What is nested deeper than anything we write is left out, since copying and printing go as deep
// as the text; a text that is no JSON gives a discarded value.
inline Json parse_json(std::string_view text) {
  constexpr int deepest = 32;
  const auto shallow = [](int depth, Json::parse_event_t, Json&) { return depth <= deepest; };
  return Json::parse(text.begin(), text.end(), shallow, false);
}

}  // namespace hone
