#include "app/data/zip.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>

#include "app/data/byte_source.hpp"
#include "hone/base/error.hpp"

namespace hone {
namespace {

using Bytes = std::span<const std::uint8_t>;

[[noreturn]] void fail(const std::string& origin, const std::string& what) {
  throw InputError(fmt::format("{}: {}", origin, what));
}

// A number of `width` bytes, little endian.
std::uint64_t number(Bytes bytes, std::uint64_t at, int width, const std::string& origin) {
  if (at + static_cast<std::uint64_t>(width) > bytes.size()) fail(origin, "the zip archive is cut off");
  std::uint64_t value = 0;
  for (int i = width; i-- > 0;) value = value << 8 | bytes[at + static_cast<std::uint64_t>(i)];
  return value;
}

constexpr std::uint64_t end_size = 22;

// The end record is at the end of the file, before a comment of at most 64 KiB.
std::uint64_t end_record(Bytes archive, const std::string& origin) {
  for (std::uint64_t back = end_size; back <= archive.size() && back <= end_size + 0xffff; ++back)
    if (number(archive, archive.size() - back, 4, origin) == 0x06054b50) return archive.size() - back;
  fail(origin, "expected a zip archive, found no directory at its end");
}

class Inflation {
 public:
  Inflation() {
    if (inflateInit2(&stream_, -MAX_WBITS) != Z_OK) throw Error("zlib cannot start");
  }
  ~Inflation() { inflateEnd(&stream_); }
  Inflation(const Inflation&) = delete;
  Inflation& operator=(const Inflation&) = delete;

  // Everything, but never more than `most` bytes.
  std::vector<std::uint8_t> all(Bytes in, std::uint64_t most, const std::string& origin) {
    std::vector<std::uint8_t> out;
    std::vector<std::uint8_t> piece(1 << 16);
    int status = Z_OK;
    while (status == Z_OK) {
      const std::size_t feed = std::min<std::size_t>(in.size(), 1 << 20);
      stream_.next_in = const_cast<Bytef*>(in.data());
      stream_.avail_in = static_cast<uInt>(feed);
      stream_.next_out = piece.data();
      stream_.avail_out = static_cast<uInt>(piece.size());
      status = inflate(&stream_, Z_NO_FLUSH);
      in = in.subspan(feed - stream_.avail_in);
      const std::size_t got = piece.size() - stream_.avail_out;
      if (out.size() + got > most) fail(origin, "more bytes than the zip archive announces");
      out.insert(out.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(got));
      if (status == Z_OK && got == 0 && in.empty()) break;
    }
    if (status != Z_STREAM_END) fail(origin, "the compressed data are damaged or cut off");
    return out;
  }

 private:
  z_stream stream_{};
};

}  // namespace

std::vector<ZipEntry> zip_entries(Bytes archive, const std::string& origin) {
  const std::uint64_t end = end_record(archive, origin);
  const std::uint64_t count = number(archive, end + 10, 2, origin);
  std::uint64_t at = number(archive, end + 16, 4, origin);
  if (count == 0xffff || at == 0xffffffff)
    fail(origin, "expected a zip archive below 4 GB, with fewer than 65,535 files");
  std::vector<ZipEntry> entries;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto field = [&](std::uint64_t offset, int width) { return number(archive, at + offset, width, origin); };
    if (field(0, 4) != 0x02014b50) fail(origin, "the directory of the zip archive is damaged");
    if (field(8, 2) & 1) fail(origin, "the zip archive is encrypted");
    ZipEntry entry{.name = {},
                   .method = static_cast<std::uint32_t>(field(10, 2)),
                   .crc = static_cast<std::uint32_t>(field(16, 4)),
                   .stored = field(20, 4),
                   .size = field(24, 4),
                   .offset = field(42, 4)};
    if (entry.stored == 0xffffffff || entry.size == 0xffffffff)
      fail(origin, "expected files below 4 GB in the zip archive");
    const std::uint64_t name = field(28, 2), extra = field(30, 2), comment = field(32, 2);
    if (at + 46 + name > archive.size()) fail(origin, "the zip archive is cut off");
    entry.name.assign(archive.begin() + static_cast<std::ptrdiff_t>(at + 46),
                      archive.begin() + static_cast<std::ptrdiff_t>(at + 46 + name));
    entries.push_back(std::move(entry));
    at += 46 + name + extra + comment;
  }
  return entries;
}

std::vector<std::uint8_t> unzipped(Bytes archive, const ZipEntry& entry, const std::string& origin) {
  const std::uint64_t at = entry.offset;
  if (number(archive, at, 4, origin) != 0x04034b50) fail(origin, "the zip archive is damaged");
  const std::uint64_t begin = at + 30 + number(archive, at + 26, 2, origin) + number(archive, at + 28, 2, origin);
  if (begin > archive.size() || entry.stored > archive.size() - begin) fail(origin, "the zip archive is cut off");
  if (entry.size > ByteSource::inflated_limit) fail(origin, "expected at most 4 GiB");
  const Bytes in = archive.subspan(begin, entry.stored);
  if (entry.method != 0 && entry.method != 8)
    fail(origin, fmt::format("expected a stored or deflated file in the zip archive, found method {}", entry.method));
  std::vector<std::uint8_t> out =
      entry.method == 0 ? std::vector<std::uint8_t>(in.begin(), in.end()) : Inflation().all(in, entry.size, origin);
  if (out.size() != entry.size || crc32_z(0, out.data(), static_cast<z_size_t>(out.size())) != entry.crc)
    fail(origin, "the checksum in the zip archive does not match");
  return out;
}

}  // namespace hone
