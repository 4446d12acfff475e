#include "app/run/safetensors.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "hone/base/error.hpp"

namespace hone {
namespace {

using Bytes = std::vector<std::uint8_t>;

TensorFile sample() {
  TensorFile file;
  file.notes = {{"config.seed", "1"}, {"name", "a \"b\" µ"}};
  file.tensors.push_back({"weight", {2, 3}, std::vector<float>{1, 2, 3, 4, 5, -0.0f}});
  file.tensors.push_back({"baseline", {2}, std::vector<double>{0.1, std::nan("")}});
  file.tensors.push_back({"count", {1}, std::vector<std::int64_t>{-7}});
  file.tensors.push_back({"empty", {0, 4}, std::vector<float>{}});
  return file;
}

std::string error_of(const Bytes& bytes) {
  try {
    from_safetensors(bytes, "f");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

// A file with this header and this many bytes of numbers.
Bytes file_of(const std::string& header, std::size_t numbers) {
  Bytes bytes(8 + header.size() + numbers);
  const std::uint64_t length = header.size();
  std::memcpy(bytes.data(), &length, 8);
  std::ranges::copy(header, bytes.begin() + 8);
  return bytes;
}

TEST(Safetensors, WhatIsWrittenReadsBackTheSame) {
  const Bytes bytes = to_safetensors(sample());
  const TensorFile back = from_safetensors(bytes, "f");
  EXPECT_EQ(back.notes.at("name"), "a \"b\" µ");
  EXPECT_EQ(back.notes.at("sha256").size(), 64u);
  ASSERT_EQ(back.tensors.size(), 4u);
  EXPECT_EQ(to_safetensors(back), bytes);
  for (const StoredTensor& tensor : back.tensors)
    if (tensor.name == "weight") {
      EXPECT_EQ(tensor.shape, (std::vector<std::int64_t>{2, 3}));
      EXPECT_EQ(std::get<std::vector<float>>(tensor.values)[3], 4);
    }
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  EXPECT_EQ(length % 8, 0u);  // the numbers are aligned
}

TEST(Safetensors, EveryTruncationIsRefused) {
  const Bytes bytes = to_safetensors(sample());
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_NE(error_of(Bytes(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size))), "") << size;
  Bytes longer = bytes;
  longer.push_back(0);
  EXPECT_EQ(error_of(longer), "f: 1 bytes follow the last tensor");
}

TEST(Safetensors, EveryChangedByteIsRefusedOrHarmless) {
  const Bytes bytes = to_safetensors(sample());
  const std::string name = "\"sha256\"";
  const auto sum = std::search(bytes.begin(), bytes.end(), name.begin(), name.end());
  for (std::size_t i = 0; i < bytes.size(); ++i)
    for (const unsigned flip : {1u, 2u, 16u, 128u, 255u}) {
      Bytes changed = bytes;
      changed[i] = static_cast<std::uint8_t>(changed[i] ^ flip);
      const std::string error = error_of(changed);
      if (!error.empty()) continue;
      const TensorFile back = from_safetensors(changed, "f");
      const auto offset = static_cast<std::size_t>(sum - bytes.begin());
      const bool in_name = i >= offset && i < offset + name.size();  // damage to its name removes the checksum
      EXPECT_TRUE(in_name ? !back.notes.contains("sha256") : to_safetensors(back) == bytes) << i;
    }
}

TEST(Safetensors, WrongHeadersAreRefusedByName) {
  const auto tensor = [](const std::string& type, const std::string& shape, const std::string& offsets) {
    return "{\"a\":{\"dtype\":\"" + type + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}}";
  };
  EXPECT_EQ(error_of(file_of(tensor("F32", "[2]", "[0,8]"), 8)), "");
  EXPECT_EQ(error_of(file_of("{}", 0)), "");
  EXPECT_EQ(error_of(Bytes(8, 0xff)), "f: the header should have 18446744073709551615 bytes, but the whole file has 8");
  EXPECT_EQ(error_of(file_of("[1]", 0)), "f: the header is not a JSON object");
  EXPECT_EQ(error_of(file_of("{\"a\":", 0)), "f: the header is not a JSON object");
  EXPECT_EQ(error_of(file_of("{\"a\":3}", 0)), "f: tensor 'a': dtype, shape or data_offsets is missing");
  EXPECT_EQ(error_of(file_of("{\"__metadata__\":{\"a\":3}}", 0)), "f: __metadata__: 'a' is not a text");
  EXPECT_EQ(error_of(file_of(tensor("F16", "[4]", "[0,8]"), 8)), "f: tensor 'a': dtype is not one of F32, F64, I64");
  EXPECT_EQ(error_of(file_of(tensor("F32", "[9]", "[0,8]"), 8)), "f: tensor 'a': shape is larger than the file");
  EXPECT_EQ(error_of(file_of(tensor("F32", "[3]", "[0,8]"), 8)), "f: tensor 'a': shape and data_offsets do not match");
  EXPECT_EQ(error_of(file_of(tensor("F32", "[1]", "[0,8]"), 8)), "f: tensor 'a': shape and data_offsets do not match");
  EXPECT_EQ(error_of(file_of(tensor("F32", "[-2]", "[0,8]"), 8)), "f: tensor 'a': shape is not a list of sizes");
  EXPECT_EQ(error_of(file_of(tensor("F32", "[2]", "[8,0]"), 8)), "f: tensor 'a': data_offsets lie outside the file");
  EXPECT_EQ(error_of(file_of(tensor("F32", "[2]", "[8,16]"), 8)), "f: tensor 'a': data_offsets lie outside the file");
  EXPECT_EQ(error_of(file_of(tensor("F32", "[2]", "[0]"), 8)), "f: tensor 'a': data_offsets are not two offsets");
  EXPECT_EQ(error_of(file_of(tensor("F32", "[4294967296,4294967296,4294967296]", "[0,8]"), 8)),
            "f: tensor 'a': shape is larger than the file");
  EXPECT_EQ(error_of(file_of(tensor("F32", "[2]", "[4,12]"), 12)), "f: tensors overlap or leave a gap at offset 0");
  const std::string two =
      "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
      "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}";
  EXPECT_EQ(error_of(file_of(two, 12)), "f: tensors overlap or leave a gap at offset 8");
}

}  // namespace
}  // namespace hone
