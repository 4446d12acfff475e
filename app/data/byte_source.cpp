#include "app/data/byte_source.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>

#include "hone/base/error.hpp"

namespace hone {
namespace {

constexpr std::size_t chunk = 1 << 16;
constexpr std::uint64_t largest_ratio = 1032;  // deflate's: 258 bytes for two bits

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

}  // namespace

// The raw bytes of the file or memory. `window` is the current part, `consumed` counts the bytes before it.
struct ByteSource::Input {
  std::unique_ptr<std::FILE, Close> file;
  std::vector<std::uint8_t> buffer;
  std::span<const std::uint8_t> window;
  std::uint64_t consumed = 0;
  std::uint64_t size = 0;

  void take(std::size_t count) {
    window = window.subspan(count);
    consumed += count;
  }

  // Makes the window hold at least one byte; false at the end.
  bool refill(const std::string& name) {
    if (!window.empty()) return true;
    if (!file) return false;
    const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), file.get());
    if (got == 0 && std::ferror(file.get()))
      throw InputError(fmt::format("{}: reading failed at byte {}: {}", name, consumed, std::strerror(errno)));
    window = std::span(buffer).first(got);
    return got > 0;
  }
};

struct ByteSource::Inflater {
  z_stream stream{};
  bool ended = false;

  Inflater() {
    if (inflateInit2(&stream, 15 + 16) != Z_OK) throw Error("zlib cannot be initialised");  // 16: a gzip header
  }
  ~Inflater() { inflateEnd(&stream); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
};

ByteSource::ByteSource(const std::filesystem::path& file) : name_(file.string()), input_(std::make_unique<Input>()) {
  std::error_code error;
  const auto status = std::filesystem::status(file, error);
  if (status.type() == std::filesystem::file_type::not_found) throw InputError(fmt::format("{}: no such file", name_));
  if (status.type() == std::filesystem::file_type::none)
    throw InputError(fmt::format("{}: cannot be opened: {}", name_, error.message()));
  if (!std::filesystem::is_regular_file(status))
    throw InputError(fmt::format("{}: expected a regular file, found {}", name_,
                                 std::filesystem::is_directory(status) ? "a folder" : "something else"));
  input_->file.reset(std::fopen(name_.c_str(), "rb"));
  if (!input_->file) throw InputError(fmt::format("{}: cannot be opened: {}", name_, std::strerror(errno)));
  input_->size = std::filesystem::file_size(file, error);
  if (error) throw InputError(fmt::format("{}: its size cannot be read: {}", name_, error.message()));
  input_->buffer.resize(chunk);
  begin();
}

ByteSource::ByteSource(std::span<const std::uint8_t> memory, std::string name)
    : name_(std::move(name)), input_(std::make_unique<Input>()) {
  input_->window = memory;
  input_->size = memory.size();
  begin();
}

ByteSource::~ByteSource() = default;

void ByteSource::begin() {
  if (!input_->refill(name_)) fail(0, "the file is empty");
  if (input_->window.size() >= 2 && input_->window[0] == 0x1F && input_->window[1] == 0x8B)
    inflater_ = std::make_unique<Inflater>();
}

std::size_t ByteSource::read(std::span<std::uint8_t> out) {
  std::size_t done = 0;
  while (done < out.size()) {
    std::size_t got = 0;
    if (inflater_) {
      got = read_inflated(out.subspan(done));
    } else if (input_->refill(name_)) {
      got = std::min(input_->window.size(), out.size() - done);
      std::copy_n(input_->window.begin(), got, out.begin() + static_cast<std::ptrdiff_t>(done));
      input_->take(got);
    }
    if (got == 0) break;
    done += got;
    offset_ += got;
  }
  return done;
}

// At least one byte, or none at the end of the last member.
std::size_t ByteSource::read_inflated(std::span<std::uint8_t> out) {
  z_stream& stream = inflater_->stream;
  const std::size_t space = std::min(out.size(), chunk);
  while (!inflater_->ended) {
    if (!input_->refill(name_))
      throw InputError(fmt::format("{}: the gzip data end early, at compressed byte {} (byte {} of the content)", name_,
                                   input_->consumed, offset_));
    const std::size_t given = std::min(input_->window.size(), chunk);
    stream.next_in = const_cast<Bytef*>(input_->window.data());  // zlib only reads it
    stream.avail_in = static_cast<uInt>(given);
    stream.next_out = out.data();
    stream.avail_out = static_cast<uInt>(space);
    const int status = inflate(&stream, Z_NO_FLUSH);
    input_->take(given - stream.avail_in);
    const std::size_t got = space - stream.avail_out;
    if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
      throw InputError(fmt::format("{}: corrupt gzip data at compressed byte {} (byte {} of the content): {}", name_,
                                   input_->consumed, offset_ + got, stream.msg ? stream.msg : "unknown"));
    if (status == Z_STREAM_END) inflater_->ended = !next_member();
    if (offset_ + got > inflated_limit) fail(offset_, fmt::format("inflates to over {} bytes", inflated_limit));
    if (got > 0) return got;
  }
  return 0;
}

// gzip members may follow each other; anything else after the end is an error.
bool ByteSource::next_member() {
  if (!input_->refill(name_)) return false;
  if (input_->window[0] != 0x1F)
    throw InputError(
        fmt::format("{}: compressed byte {}: expected the end of the file or another gzip member, found "
                    "byte 0x{:02x}",
                    name_, input_->consumed, input_->window[0]));
  inflateReset(&inflater_->stream);
  return true;
}

void ByteSource::read_exactly(std::span<std::uint8_t> out, std::string_view what) {
  const std::uint64_t from = offset_;
  const std::size_t got = read(out);
  if (got < out.size())
    fail(offset_, fmt::format("the file ends, expected {} ({} bytes from byte {})", what, out.size(), from));
}

void ByteSource::check_announced(std::uint64_t count, std::string_view what) const {
  if (count > most_left())
    fail(offset_, fmt::format("the header announces {} bytes of {}, at most {} can follow", count, what, most_left()));
}

std::vector<std::uint8_t> ByteSource::read_announced(std::uint64_t count, std::string_view what) {
  check_announced(count, what);
  std::vector<std::uint8_t> values;
  while (values.size() < count) {
    const std::size_t begin = values.size();
    values.resize(std::min<std::uint64_t>(count, std::max<std::uint64_t>(2 * begin, std::uint64_t{1} << 20)));
    const std::size_t got = read(std::span(values).subspan(begin));
    if (begin + got < values.size())
      fail(offset_, fmt::format("the file ends after {} of {} bytes of {}", begin + got, count, what));
  }
  return values;
}

void ByteSource::expect_end() {
  const std::uint64_t end = offset_;
  std::array<std::uint8_t, 1> extra;
  if (read(extra) > 0) fail(end, "expected the end of the file, but more bytes follow");
}

std::uint64_t ByteSource::most_left() const {
  if (!inflater_) return input_->size - std::min(input_->size, offset_);
  const std::uint64_t most = std::min(inflated_limit, std::min(inflated_limit, input_->size) * largest_ratio);
  return most - std::min(most, offset_);
}

void ByteSource::fail(std::uint64_t offset, std::string_view what) const {
  throw InputError(fmt::format("{}: byte {}{}: {}", name_, offset, inflater_ ? " of the content" : "", what));
}

}  // namespace hone
