#pragma once

#include <cstdint>
#include <span>

#include "app/data/amat.hpp"
#include "app/data/csv.hpp"
#include "app/data/idx.hpp"
#include "app/data/matrix_market.hpp"
#include "app/data/npy.hpp"
#include "app/data/picture.hpp"
#include "app/data/zip.hpp"
#include "app/run/safetensors.hpp"
#include "hone/base/error.hpp"

namespace hone::fuzz {

// Each reads any input. Throwing InputError is fine; throwing anything else is a bug.
template <class Read>
void try_to(Read read, std::span<const std::uint8_t> bytes) {
  try {
    ByteSource source(bytes, "input");
    read(source);
  } catch (const InputError&) {
  }
}

inline void idx(std::span<const std::uint8_t> bytes) {
  try_to([](ByteSource& source) { read_idx(source); }, bytes);
}
inline void amat(std::span<const std::uint8_t> bytes) {
  try_to([](ByteSource& source) { read_amat(source); }, bytes);
}
inline void npy(std::span<const std::uint8_t> bytes) {
  try_to([](ByteSource& source) { read_npy(source); }, bytes);
  try_to([](ByteSource& source) { read_npy(source, {Missing::ignored, 1}); }, bytes);
}

inline void csv(std::span<const std::uint8_t> bytes) {
  try_to([](ByteSource& source) { read_csv(source); }, bytes);
  try_to([](ByteSource& source) { read_csv(source, {Missing::ignored, "b"}); }, bytes);
}
inline void image(std::span<const std::uint8_t> bytes) {
  try {
    read_image(bytes, "input");
  } catch (const InputError&) {
  }
}
inline void mtx(std::span<const std::uint8_t> bytes) {
  try_to([](ByteSource& source) { read_matrix_market(source); }, bytes);
}

inline void zip(std::span<const std::uint8_t> bytes) {
  try {
    for (const ZipEntry& entry : zip_entries(bytes, "input")) unzipped(bytes, entry, "input");
  } catch (const InputError&) {
  }
}

inline void safetensors(std::span<const std::uint8_t> bytes) {
  try {
    from_safetensors(bytes, "input");
  } catch (const InputError&) {
  }
}

}  // namespace hone::fuzz
