#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "app/data/byte_source.hpp"
#include "hone/base/error.hpp"
#include "tests/support/temporary.hpp"

namespace hone::test {

using Bytes = std::vector<std::uint8_t>;

inline Bytes bytes_of(std::string_view text) { return Bytes(text.begin(), text.end()); }

inline Bytes operator+(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

inline Bytes gzip(const Bytes& content) {
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  Bytes out(deflateBound(&stream, content.size()) + 32);
  stream.next_in = const_cast<Bytef*>(content.data());
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = out.data();
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

inline Bytes idx_header(const std::vector<std::uint32_t>& dimensions) {
  Bytes bytes = {0, 0, 8, static_cast<std::uint8_t>(dimensions.size())};
  for (const std::uint32_t size : dimensions)
    for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<std::uint8_t>(size >> shift));
  return bytes;
}

// An archive with one deflated file.
inline Bytes zip_with(const std::string& name, const Bytes& content) {
  const Bytes packed = gzip(content);  // a header of 10 bytes, the deflated content, checksum and size
  const Bytes deflated(packed.begin() + 10, packed.end() - 8);
  const auto number = [](std::size_t value, int width) {
    Bytes bytes;
    for (int i = 0; i < width; ++i)
      bytes.push_back(i < 8 ? static_cast<std::uint8_t>(value >> (8 * i)) : std::uint8_t{0});
    return bytes;
  };
  const Bytes about = number(20, 2) + number(0, 2) + number(8, 2) + number(0, 4) +
                      Bytes(packed.end() - 8, packed.end() - 4) + number(deflated.size(), 4) +
                      number(content.size(), 4) + number(name.size(), 2) + number(0, 2);
  const Bytes file = bytes_of("PK\3\4") + about + bytes_of(name) + deflated;
  const Bytes directory = bytes_of("PK\1\2") + number(20, 2) + about + number(0, 14) + bytes_of(name);
  return file + directory + bytes_of("PK\5\6") + number(0, 4) + number(1, 2) + number(1, 2) +
         number(directory.size(), 4) + number(file.size(), 4) + number(0, 2);
}

// Images whose values count up.
inline Bytes idx_images(std::uint32_t items, std::uint32_t rows, std::uint32_t cols) {
  Bytes bytes = idx_header({items, rows, cols});
  for (std::uint32_t i = 0; i < items * rows * cols; ++i) bytes.push_back(static_cast<std::uint8_t>(7 * i));
  return bytes;
}

inline Bytes npy(std::string_view dictionary, const Bytes& values, std::uint8_t version = 1) {
  Bytes bytes = {0x93, 'N', 'U', 'M', 'P', 'Y', version, 0};
  const std::size_t length = dictionary.size() + 1;
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) bytes.push_back(static_cast<std::uint8_t>(length >> (8 * i)));
  return bytes + bytes_of(dictionary) + bytes_of("\n") + values;
}

template <class T>
Bytes raw(const std::vector<T>& values) {
  const auto* begin = reinterpret_cast<const std::uint8_t*>(values.data());
  return Bytes(begin, begin + values.size() * sizeof(T));
}

// The message of the InputError, or "" if none is thrown.
template <class Call>
std::string input_error(Call&& call) {
  try {
    call();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

class Folder : public ::testing::Test {
 protected:
  std::filesystem::path write(const std::filesystem::path& name, const Bytes& bytes) const {
    std::filesystem::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return folder_ / name;
  }

  const TemporaryFolder temporary_;
  const std::filesystem::path folder_ = temporary_.path();
};

inline Bytes read_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(file), {});
}

}  // namespace hone::test
