#include "hone/target/stan_source.hpp"

#include <unistd.h>

#include <fstream>

#include "tests/fuzz/readers.hpp"

namespace {

// The text as a file; every line of the program has an origin.
void read_as_file(const std::string& text) {
  static const std::filesystem::path file =
      std::filesystem::temp_directory_path() / ("hone-fuzz-" + std::to_string(::getpid()) + ".stan");
  struct Removal {
    ~Removal() { std::filesystem::remove(file); }
  } removal;
  std::ofstream(file, std::ios::binary) << text;
  const hone::StanSource source = hone::read_stan(file);
  for (std::size_t line = 1; line <= source.lines.size(); ++line) source.origin(static_cast<int>(line));
}

}  // namespace

// Every fourth input as a file, which takes longer; others as older translators read them.
void hone::fuzz::stan_source(std::span<const std::uint8_t> bytes) {
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  try {
    if (bytes.size() % 4)
      to_stan_2_21(text);
    else
      read_as_file(text);
  } catch (const InputError&) {
  }
}
