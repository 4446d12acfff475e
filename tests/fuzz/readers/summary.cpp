#include "app/run/json.hpp"
#include "tests/fuzz/readers.hpp"

// summary.json of a run: what is read can be copied and written.
void hone::fuzz::summary(std::span<const std::uint8_t> bytes) {
  const Json json = parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (!json.is_object()) return;
  const Json copy = json;
  static_cast<void>(copy.dump(-1, ' ', false, Json::error_handler_t::replace));
}
