#include "app/report/latent_figure.hpp"
#include "tests/fuzz/readers.hpp"

void hone::fuzz::latent(std::span<const std::uint8_t> bytes) {
  try {
    const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const std::size_t zero = std::min(text.find('\0'), text.size());
    latent_points_in(text.substr(0, zero), text.substr(std::min(zero + 1, text.size())));
  } catch (const InputError&) {
  }
}
