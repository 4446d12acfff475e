// Data that are read a piece at a time are what they are when the file is read as a whole.

#include "app/data/data_stream.hpp"

#include <gmock/gmock.h>

#include <numeric>

#include "app/data/picture.hpp"
#include "tests/app/data/files.hpp"

namespace hone {
namespace {

using namespace test;
using testing::HasSubstr;

constexpr int block = 2, at_once = 32, count = 100, width = 6;  // three pieces and a rest

Matrix<double> numbers_of(const DataSet& data) {
  std::vector<int> all(data.size());
  std::iota(all.begin(), all.end(), 0);
  Matrix<double> columns(data.dimension(), data.size());
  data.expand(all, columns.view());
  return columns;
}

// What a command without pieces would do.
DataSet whole(const DataRequest& request) {
  DataSet data = read_data_file(request.name, file_request(request));
  try {
    return binarized(std::move(data), request.binarization, {request.seed, 1});
  } catch (const InputError& error) {
    throw InputError(request.name + ": " + error.what());
  }
}

void expect_as_whole(const DataRequest& request) {
  SCOPED_TRACE(request.name);
  const DataSet wanted = whole(request);
  const Matrix<double> numbers = numbers_of(wanted);
  int checked = 0, in_its_form = 0;
  const DataStream stream(request, block, [&](const DataSet& data, int first) {
    if (first == 0) checked = in_its_form = 0;
    checked += data.size();
    if (data.binary() == wanted.binary()) in_its_form += data.size();
  });
  EXPECT_EQ(checked, count);
  EXPECT_EQ(in_its_form, count);
  ASSERT_EQ(stream.size(), wanted.size());
  EXPECT_EQ(stream.shape().rows, wanted.shape().rows);
  EXPECT_EQ(stream.shape().channels, wanted.shape().channels);
  EXPECT_FALSE(stream.in_memory());
  for (const auto& [begin, end] : {std::pair(0, count), std::pair(0, 1), std::pair(70, 71), std::pair(40, 90)}) {
    int next = begin - begin % at_once;
    stream.each(begin, end, [&](const DataSet& data, int first) {
      EXPECT_EQ(first, next);
      EXPECT_EQ(data.binary(), wanted.binary());
      const Matrix<double> found = numbers_of(data);
      for (int c = 0; c < data.size(); ++c)
        for (int d = 0; d < found.rows(); ++d) ASSERT_EQ(found(d, c), numbers(d, first + c)) << first + c;
      next = first + data.size();
    });
    EXPECT_EQ(next, end);
  }
}

enum class Late { nothing, grey, large, fraction, missing };  // what the later data have that the first do not

std::vector<double> values_with(Late late) {
  std::vector<double> values(count * width);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = i * i % 7 < 3;
  double& odd = values[70 * width + 2];
  if (late == Late::grey) odd = 200;
  if (late == Late::large) odd = 300;
  if (late == Late::fraction) odd = 0.75;
  if (late == Late::missing) odd = std::numeric_limits<double>::quiet_NaN();
  return values;
}

class Stream : public Folder {
 protected:
  template <class T>
  std::string npy_file(const std::string& type, Late late, const std::string& order = "False") {
    const std::vector<double> values = values_with(late);
    const std::string header = "{'descr': '" + type + "', 'fortran_order': " + order + ", 'shape': (100, 6), }";
    return write("x.npy", npy(header, raw(std::vector<T>(values.begin(), values.end())))).string();
  }
  std::string csv_file(Late late, const std::string& name = "x.csv") {
    std::string text = "a,b,c,d,e,f,kind\n";
    const std::vector<double> values = values_with(late);
    for (std::size_t i = 0; i < values.size(); ++i)
      text += (std::isnan(values[i]) ? "" : std::to_string(values[i])) + (i % width == width - 1 ? ",x\n" : ",");
    return write(name, name.ends_with("gz") ? gzip(bytes_of(text)) : bytes_of(text)).string();
  }
};

TEST_F(Stream, NpyOfEveryForm) {
  for (const Binarization binarization : {Binarization::none, Binarization::threshold, Binarization::stochastic})
    for (const Late late : {Late::nothing, Late::grey}) {
      expect_as_whole({.name = npy_file<std::uint8_t>("|u1", late), .binarization = binarization});
      expect_as_whole({.name = npy_file<std::int64_t>("<i8", late), .binarization = binarization});
      expect_as_whole({.name = npy_file<float>("<f4", late), .binarization = binarization});
      expect_as_whole({.name = npy_file<double>("<f8", late, "True"), .binarization = binarization});
    }
  expect_as_whole({.name = npy_file<std::int32_t>("<i4", Late::large)});
  expect_as_whole({.name = npy_file<double>("<f8", Late::fraction), .binarization = Binarization::stochastic});
}

TEST_F(Stream, Csv) {
  for (const Late late : {Late::nothing, Late::grey, Late::large, Late::fraction})
    expect_as_whole({.name = csv_file(late), .shape = {2, 3}, .labels = "kind"});
  for (const Late late : {Late::nothing, Late::grey, Late::fraction})
    expect_as_whole({.name = csv_file(late, "x.csv.gz"), .binarization = Binarization::stochastic, .labels = "kind"});
}

TEST_F(Stream, ImagesBitsAndSparseCounts) {
  for (const Binarization binarization : {Binarization::none, Binarization::threshold, Binarization::stochastic}) {
    const Bytes idx = idx_images(count, 2, 3);
    expect_as_whole({.name = write("images-ubyte", idx).string(), .binarization = binarization});
    expect_as_whole({.name = write("zipped-ubyte", gzip(idx)).string(), .binarization = binarization});
  }
  std::string amat, mtx = "%%MatrixMarket matrix coordinate real general\n100 6 100\n";
  for (int i = 0; i < count; ++i) {
    amat += i % 3 ? "0 1 1 0 1 0\n" : "1 1 0 0 0 1\n";
    mtx += std::to_string(count - i) + " " + std::to_string(1 + i % 6) + " " + std::to_string(i + 1) + "\n";
  }
  expect_as_whole({.name = write("x.amat", bytes_of(amat)).string()});
  expect_as_whole({.name = write("x.mtx", bytes_of(mtx)).string()});
  for (int i = 0; i < count; ++i) {
    const auto level = static_cast<std::uint8_t>(2 * i);
    std::filesystem::create_directories(folder_ / "images");
    write_png({1, 2, 3, {level, 0, 0, 1, 2, level}}, folder_ / "images" / ("i" + std::to_string(1000 + i) + ".png"));
  }
  expect_as_whole({.name = (folder_ / "images").string()});
}

TEST_F(Stream, WhatIsWrongIsFoundBeforeAnyUseAndNamed) {
  const auto expect_same_error = [&](const DataRequest& request, const std::string& part) {
    const std::string wanted = input_error([&] { whole(request); });
    EXPECT_THAT(wanted, HasSubstr(part));
    EXPECT_EQ(input_error([&] { DataStream(request, block, [](const DataSet&, int) {}); }), wanted);
  };
  expect_same_error({.name = npy_file<double>("<f8", Late::missing)}, "datum 70, position 2");
  expect_same_error({.name = csv_file(Late::missing), .labels = "kind"}, "line 72: column 3 (c): a missing value");
  expect_same_error({.name = npy_file<double>("<f8", Late::large), .binarization = Binarization::threshold},
                    "value 2 of datum 70 is 300: binarization needs values in [0, 1]");
  expect_same_error({.name = csv_file(Late::large), .binarization = Binarization::stochastic, .labels = "kind"},
                    "value 2 of datum 70 is 300");
  const Bytes images = idx_images(count, 2, 3);
  expect_same_error({.name = write("cut-ubyte", Bytes(images.begin(), images.end() - 1)).string()}, "at most 599");
  expect_same_error({.name = write("more-ubyte", images + Bytes{1}).string()}, "expected the end of the file");
}

TEST_F(Stream, AFileThatFitsIntoOnePieceStaysInMemory) {
  const DataRequest request{.name = write("few-ubyte", idx_images(at_once, 2, 3)).string()};
  const DataStream stream(request, block, [](const DataSet&, int) {});
  EXPECT_TRUE(stream.in_memory());
  std::filesystem::remove(request.name);
  int seen = 0;
  stream.each(0, 5, [&](const DataSet& data, int) { seen += data.size(); });
  EXPECT_EQ(seen, 5);
}

TEST_F(Stream, PiecesAreWholeBlocksAndBoundInMemory) {
  EXPECT_EQ(DataStream::at_once(500, 784), 8000);
  EXPECT_EQ(DataStream::at_once(500, 10'000), 3000);
  EXPECT_EQ(DataStream::at_once(500, 1'000'000), 500);
}

}  // namespace
}  // namespace hone
