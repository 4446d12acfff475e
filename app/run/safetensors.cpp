#include "app/run/safetensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "app/run/json.hpp"
#include "hone/base/error.hpp"
#include "hone/base/sha256.hpp"

namespace hone {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are stored byte for byte");

using Bytes = std::span<const std::uint8_t>;

constexpr std::size_t length_bytes = 8;
constexpr auto notes_key = "__metadata__";
constexpr auto checksum_key = "sha256";

template <class T>
constexpr const char* type_name = nullptr;
template <>
constexpr const char* type_name<float> = "F32";
template <>
constexpr const char* type_name<double> = "F64";
template <>
constexpr const char* type_name<std::int64_t> = "I64";

Bytes bytes_of(const std::string& text) { return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}; }

std::string dump(const Json& header) { return header.dump(-1, ' ', false, Json::error_handler_t::replace); }

// Checksum of the header (with an empty checksum in it), then the numbers.
std::string checksum(Json header, Bytes data) {
  header[notes_key][checksum_key] = "";
  Sha256 sum;
  sum.update(bytes_of(dump(header)));
  sum.update(data);
  return sum.hex();
}

std::size_t width(const StoredTensor& tensor) {
  return std::visit([](const auto& values) { return sizeof(values[0]); }, tensor.values);
}

void append(const StoredTensor& tensor, Json& header, std::vector<std::uint8_t>& data) {
  std::visit(
      [&]<class T>(const std::vector<T>& values) {
        const std::size_t begin = data.size();
        data.resize(begin + values.size() * sizeof(T));
        std::copy_n(reinterpret_cast<const std::uint8_t*>(values.data()), values.size() * sizeof(T),
                    data.data() + begin);
        header[tensor.name] = {
            {"dtype", type_name<T>}, {"shape", tensor.shape}, {"data_offsets", {begin, data.size()}}};
      },
      tensor.values);
}

class Reader {
 public:
  Reader(Bytes bytes, const std::string& origin) : bytes_(bytes), origin_(origin) {}

  TensorFile read() {
    split();
    TensorFile content;
    for (const auto& [name, entry] : header_.items()) {
      if (name == notes_key)
        content.notes = notes(entry);
      else
        content.tensors.push_back(tensor(name, entry));
    }
    check_cover();
    if (const auto sum = content.notes.find(checksum_key); sum != content.notes.end())
      require(checksum(header_, data_) == sum->second, "the checksum is wrong: the file is damaged");
    return content;
  }

 private:
  struct Range {
    std::uint64_t begin, end;
  };

  void require(bool good, const std::string& what) const {
    if (!good) throw InputError(fmt::format("{}: {}", origin_, what));
  }

  void split() {
    require(bytes_.size() >= length_bytes, fmt::format("truncated: {} bytes", bytes_.size()));
    std::uint64_t length = 0;
    std::memcpy(&length, bytes_.data(), length_bytes);
    require(length <= bytes_.size() - length_bytes,
            fmt::format("the header should have {} bytes, but the whole file has {}", length, bytes_.size()));
    const Bytes header = bytes_.subspan(length_bytes, length);
    data_ = bytes_.subspan(length_bytes + length);
    header_ = parse_json({reinterpret_cast<const char*>(header.data()), header.size()});
    require(header_.is_object(), "the header is not a JSON object");
  }

  std::map<std::string, std::string> notes(const Json& entry) const {
    require(entry.is_object(), "__metadata__ is not a JSON object");
    std::map<std::string, std::string> notes;
    for (const auto& [key, value] : entry.items()) {
      require(value.is_string(), fmt::format("__metadata__: '{}' is not a text", key));
      notes[key] = value.get<std::string>();
    }
    return notes;
  }

  StoredTensor tensor(const std::string& name, const Json& entry) {
    const auto whole = [](const Json& value) { return value.is_number_unsigned(); };
    const auto require_of = [&](bool good, const char* what) {
      require(good, fmt::format("tensor '{}': {}", name, what));
    };
    require_of(
        entry.is_object() && entry.contains("dtype") && entry.contains("shape") && entry.contains("data_offsets"),
        "dtype, shape or data_offsets is missing");
    const Json &type = entry["dtype"], &shape = entry["shape"], &offsets = entry["data_offsets"];
    require_of(shape.is_array() && std::ranges::all_of(shape, whole), "shape is not a list of sizes");
    require_of(offsets.is_array() && offsets.size() == 2 && std::ranges::all_of(offsets, whole),
               "data_offsets are not two offsets");
    const Range range{offsets[0].get<std::uint64_t>(), offsets[1].get<std::uint64_t>()};
    require_of(range.begin <= range.end && range.end <= data_.size(), "data_offsets lie outside the file");
    ranges_.push_back(range);

    StoredTensor result{name, {}, {}};
    std::uint64_t size = 1;
    for (const Json& extent : shape) {
      const auto n = extent.get<std::uint64_t>();
      require_of(n == 0 || size <= data_.size() / n, "shape is larger than the file");
      size *= n;
      result.shape.push_back(static_cast<std::int64_t>(n));
    }
    bool known = false;
    const auto take = [&]<class T>(T) {
      if (type != type_name<T>) return;
      known = true;
      require_of(size * sizeof(T) == range.end - range.begin, "shape and data_offsets do not match");
      std::vector<T> values(size);
      if (size > 0) std::memcpy(values.data(), data_.data() + range.begin, size * sizeof(T));
      result.values = std::move(values);
    };
    take(float{});
    take(double{});
    take(std::int64_t{});
    require_of(known, "dtype is not one of F32, F64, I64");
    return result;
  }

  // Tensors follow each other without a gap, up to the end of the file.
  void check_cover() {
    std::ranges::sort(ranges_, {}, [](const Range& range) { return std::pair(range.begin, range.end); });
    std::uint64_t end = 0;
    for (const Range& range : ranges_) {
      require(range.begin == end, fmt::format("tensors overlap or leave a gap at offset {}", end));
      end = range.end;
    }
    require(end == data_.size(), fmt::format("{} bytes follow the last tensor", data_.size() - end));
  }

  Bytes bytes_, data_;
  const std::string& origin_;
  Json header_;
  std::vector<Range> ranges_;
};

}  // namespace

std::vector<std::uint8_t> to_safetensors(const TensorFile& content) {
  Json header;
  header[notes_key] = Json::object();
  header[notes_key][checksum_key] = "";
  for (const auto& [key, value] : content.notes)
    if (key != checksum_key) header[notes_key][key] = value;
  std::vector<const StoredTensor*> order;
  for (const StoredTensor& tensor : content.tensors) order.push_back(&tensor);
  std::ranges::stable_sort(order, std::greater(), [](const StoredTensor* tensor) { return width(*tensor); });
  std::vector<std::uint8_t> data;
  for (const StoredTensor* tensor : order) append(*tensor, header, data);
  header[notes_key][checksum_key] = checksum(header, data);

  std::string text = dump(header);
  text.append((length_bytes - text.size() % length_bytes) % length_bytes, ' ');
  const std::uint64_t length = text.size();
  std::vector<std::uint8_t> bytes(length_bytes + text.size() + data.size());
  std::memcpy(bytes.data(), &length, length_bytes);
  std::ranges::copy(text, bytes.begin() + length_bytes);
  std::ranges::copy(data, bytes.end() - static_cast<std::ptrdiff_t>(data.size()));
  return bytes;
}

TensorFile from_safetensors(Bytes bytes, const std::string& origin) { return Reader(bytes, origin).read(); }

}  // namespace hone
