#include "app/run/unfinished_scores.hpp"
#include "tests/fuzz/readers.hpp"

void hone::fuzz::scores(std::span<const std::uint8_t> bytes) {
  try {
    const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    unfinished_scores_in(text, {"s", "m", "d"}, bytes.size() % 2 ? 1 : 3, "input");
  } catch (const InputError&) {
  }
}
