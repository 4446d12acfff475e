#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace hone {

// What one rank tells the others, as bytes. Read in the order in which it was written.
class Bytes {
 public:
  Bytes() = default;
  explicit Bytes(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}
  std::span<std::byte> bytes() { return bytes_; }

  template <class T>
  void put(const T& value) {
    put_all(std::span(&value, 1));
  }
  template <class T>
  void put_all(std::span<const T> values) {  // without their number
    static_assert(std::is_trivially_copyable_v<T>);
    if (values.empty()) return;
    const std::size_t end = bytes_.size();
    bytes_.resize(end + values.size_bytes());
    std::memcpy(bytes_.data() + end, values.data(), values.size_bytes());
  }
  template <class T>
  void put_list(std::span<const T> values) {
    put(values.size());
    put_all(values);
  }
  void put(const std::string& text) { put_list(std::span<const char>(text)); }

  template <class T>
  T take() {
    T value{};
    take_into(std::span(&value, 1));
    return value;
  }
  template <class T>
  std::vector<T> take_list() {
    std::vector<T> values(take<std::size_t>());
    take_into(std::span(values));
    return values;
  }
  std::string take_text() {
    const std::vector<char> text = take_list<char>();
    return {text.begin(), text.end()};
  }

 protected:
  template <class T>
  void take_into(std::span<T> values) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (values.empty()) return;
    std::memcpy(values.data(), bytes_.data() + at_, values.size_bytes());
    at_ += values.size_bytes();
  }

 private:
  std::vector<std::byte> bytes_;
  std::size_t at_ = 0;
};

}  // namespace hone
