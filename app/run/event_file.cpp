#include "app/run/event_file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <chrono>
#include <cstring>

#include "hone/base/error.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

// Fields of protocol buffers: a key with the field's number and kind, then its value.
enum class Wire : std::uint32_t { varint = 0, eight_bytes = 1, text = 2, four_bytes = 5 };

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value > 127; value >>= 7) bytes += static_cast<char>(value | 128);
  return bytes + static_cast<char>(value);
}
std::string key(std::uint32_t field, Wire wire) { return varint(field << 3 | static_cast<std::uint32_t>(wire)); }

template <class T>
std::string little_endian(T value) {
  static_assert(std::endian::native == std::endian::little);
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

std::string whole_number(std::uint32_t field, std::uint64_t value) { return key(field, Wire::varint) + varint(value); }
std::string text(std::uint32_t field, const std::string& bytes) {
  return key(field, Wire::text) + varint(bytes.size()) + bytes;
}

// Event: 1 wall_time, 2 step, 3 file_version, 5 summary, 7 session_log
std::string event_at(std::uint32_t step) {
  return key(1, Wire::eight_bytes) + little_endian(now()) + whole_number(2, step);
}

std::uint32_t masked(std::uint32_t crc) { return (crc >> 15 | crc << 17) + 0xa282ead8u; }

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  static const auto table = [] {
    std::array<std::uint32_t, 256> made{};
    for (std::uint32_t i = 0; i < made.size(); ++i) {
      std::uint32_t crc = i;
      for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
      made[i] = crc;
    }
    return made;
  }();
  std::uint32_t crc = ~std::uint32_t{0};
  for (const char byte : bytes) crc = crc >> 8 ^ table[(crc ^ static_cast<std::uint8_t>(byte)) & 255];
  return ~crc;
}

EventFile::EventFile(const fs::path& folder, std::uint32_t continues_from) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  for (int n = 0; path_.empty() || fs::exists(path_); ++n)
    path_ = folder / fmt::format("events.out.tfevents.{:.0f}.{}.{}.{}", now(), host.data(), getpid(), n);
  file_.open(path_, std::ios::binary);
  if (!file_) throw InputError(fmt::format("--tensorboard: {}: cannot be written", path_.string()));
  record(event_at(0) + text(3, "brain.Event:2"));
  constexpr int start = 1;
  if (continues_from > 0) record(event_at(continues_from + 1) + text(7, whole_number(1, start)));
}

void EventFile::scalar(const std::string& tag, std::uint32_t iteration, double value) {
  const std::string number = key(2, Wire::four_bytes) + little_endian(static_cast<float>(value));
  record(event_at(iteration) + text(5, text(1, text(1, tag) + number)));
}

void EventFile::record(const std::string& event) {
  const std::string length = little_endian(std::uint64_t{event.size()});
  file_ << length << little_endian(masked(crc32c(length))) << event << little_endian(masked(crc32c(event)));
  file_.flush();
  if (!file_) throw Error(fmt::format("{}: writing failed; is the disk full?", path_.string()));
}

}  // namespace hone
