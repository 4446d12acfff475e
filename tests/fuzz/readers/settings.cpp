#include "app/run/settings.hpp"

#include "tests/fuzz/readers.hpp"

namespace {

// One key of each kind.
struct Values {
  int whole = 1;
  std::uint64_t seed = 1;
  double real = 0.5;
  std::string text = "x";
  std::vector<int> list;
  std::optional<double> derived;
};

}  // namespace

// A configuration: what is read can be written, and read again.
void hone::fuzz::settings(std::span<const std::uint8_t> bytes) {
  Values values;
  Settings settings;
  settings.add("whole", values.whole, Bounds::at_least(1), "w");
  settings.add("seed", values.seed, Bounds::at_least(0), "s");
  settings.add("table.real", values.real, Bounds::inside(0, 1), "r");
  settings.add("table.derived", values.derived, Bounds::positive(), "d", "none");
  settings.add("text", values.text, "a text", "t");
  settings.add("list", values.list, Bounds::at_least(1), "l");
  try {
    settings.read_text({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, "input");
  } catch (const InputError&) {
    return;
  }
  const std::string written = settings.to_toml();
  settings.read_text(written, "written");
  if (settings.to_toml() != written) throw std::logic_error("a configuration changes when it is written and read");
}
