#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string_view>

#include "hone/base/error.hpp"

// Each reads any input. Throwing InputError is fine; throwing anything else is a bug. Where a reader has two ways of
// reading, the parity of the input's size chooses one.
namespace hone::fuzz {

// How many data to read at a time: two, or all.
inline int piece_of(std::span<const std::uint8_t> bytes) { return bytes.size() % 3 ? 2 : 1 << 30; }

void idx(std::span<const std::uint8_t> bytes);
void amat(std::span<const std::uint8_t> bytes);
void npy(std::span<const std::uint8_t> bytes);
void csv(std::span<const std::uint8_t> bytes);
void mtx(std::span<const std::uint8_t> bytes);
void zip(std::span<const std::uint8_t> bytes);
void image(std::span<const std::uint8_t> bytes);
void labels(std::span<const std::uint8_t> bytes);
void safetensors(std::span<const std::uint8_t> bytes);
void settings(std::span<const std::uint8_t> bytes);
void draws(std::span<const std::uint8_t> bytes);
void table(std::span<const std::uint8_t> bytes);
void summary(std::span<const std::uint8_t> bytes);
void stan_data(std::span<const std::uint8_t> bytes);
void stan_source(std::span<const std::uint8_t> bytes);
void checkpoint(std::span<const std::uint8_t> bytes);
void scores(std::span<const std::uint8_t> bytes);
void latent(std::span<const std::uint8_t> bytes);  // latent.json, a zero, latent.csv

}  // namespace hone::fuzz
