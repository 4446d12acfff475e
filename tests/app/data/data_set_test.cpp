#include "hone/latent/data_set.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <numeric>

#include "app/data/binarize.hpp"
#include "app/data/load.hpp"
#include "app/data/picture.hpp"
#include "app/data/synthetic.hpp"
#include "tests/app/data/files.hpp"

namespace hone {
namespace {

using namespace hone::test;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <class T>
Matrix<T> expanded(const DataSet& data, std::vector<int> indices) {
  Matrix<T> out(data.dimension(), static_cast<int>(indices.size()));
  data.expand(indices, out.view());
  return out;
}

Matrix<double> everything(const DataSet& data) {
  std::vector<int> indices(static_cast<std::size_t>(data.size()));
  std::iota(indices.begin(), indices.end(), 0);
  return expanded<double>(data, indices);
}

DataSet grey(std::uint8_t level, int size, ImageShape shape) {
  return DataSet(std::vector<std::uint8_t>(static_cast<std::size_t>(size * shape.pixels()), level), shape, 1 / 255.0);
}

TEST(DataSet, ExpandsBitsOfAnyLength) {
  for (const int dimension : {1, 63, 64, 65, 101, 784}) {
    BitRows rows(dimension);
    std::vector<std::uint8_t> row(static_cast<std::size_t>(dimension));
    for (int datum = 0; datum < 5; ++datum) {
      for (std::size_t i = 0; i < row.size(); ++i) row[i] = (i * i + static_cast<std::size_t>(datum)) % 3 == 1;
      rows.append(row);
    }
    const DataSet data(rows, {1, dimension});
    EXPECT_TRUE(data.binary());
    const std::vector<int> indices = {4, 0, 4};
    const Matrix<float> out = expanded<float>(data, indices);
    for (int col = 0; col < 3; ++col)
      for (int i = 0; i < dimension; ++i)
        ASSERT_EQ(out(i, col), static_cast<float>(rows(indices[static_cast<std::size_t>(col)], i)));
  }
}

TEST(DataSet, ExpandsBytesAndNumbers) {
  const DataSet bytes(std::vector<std::uint8_t>{0, 51, 255, 102, 5, 6}, {1, 3}, 1 / 255.0);
  EXPECT_NEAR(expanded<double>(bytes, {1})(0, 0), 0.4, 1e-15);
  EXPECT_EQ(expanded<float>(bytes, {0})(2, 0), 1.0f);
  const DataSet numbers(std::vector<double>{0.1, -2, 3, 4}, {2, 1});
  EXPECT_EQ(expanded<double>(numbers, {0})(0, 0), 0.1);
  EXPECT_EQ(expanded<float>(numbers, {1, 0})(1, 1), -2.0f);
  EXPECT_FALSE(numbers.binary());
}

TEST(DataSet, WrongShapesAndIndicesAreErrors) {
  const DataSet data = grey(3, 4, {2, 2});
  Matrix<float> out(4, 2);
  const auto message = [&](std::vector<int> indices) { return input_error([&] { data.expand(indices, out.view()); }); };
  EXPECT_THAT(message({0, 4}), HasSubstr("there is no datum 4 among 4"));
  EXPECT_THAT(message({-1, 0}), HasSubstr("there is no datum -1"));
  EXPECT_THAT(message({0}), HasSubstr("do not fit"));
  EXPECT_THAT(input_error([] { DataSet(std::vector<float>(5), {2, 2}); }), HasSubstr("not whole images"));
  EXPECT_THAT(input_error([] { DataSet(std::vector<float>(5), {0, 2}); }), HasSubstr("impossible"));
  EXPECT_THAT(input_error([] { DataSet(BitRows(5), {2, 2}); }), HasSubstr("not images of"));
  EXPECT_THAT(input_error([&] { data.slice(2, 5); }), HasSubstr("[2, 5)"));
}

TEST(DataSet, SlicesKeepTheData) {
  const DataSet data = synthetic_data(3, 0, 10);
  const DataSet part = data.slice(4, 7);
  ASSERT_EQ(part.size(), 3);
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 784; ++j) ASSERT_EQ((*part.bits())(i, j), (*data.bits())(4 + i, j));
  EXPECT_EQ(data.slice(4, 4).size(), 0);
}

TEST(DataSet, PacksWhatIsBinary) {
  const DataSet bits = packed_if_binary(DataSet(std::vector<float>{0, 1, 1, 0, 0, 1}, {1, 3}));
  ASSERT_TRUE(bits.binary());
  EXPECT_EQ(bits.bits()->row(1)[0], 0b100u);
  EXPECT_FALSE(packed_if_binary(DataSet(std::vector<double>{0, 0.5}, {1, 2})).binary());
  EXPECT_TRUE(packed_if_binary(DataSet(std::vector<std::uint8_t>{0, 1}, {1, 2}, 1)).binary());
  EXPECT_FALSE(packed_if_binary(DataSet(std::vector<std::uint8_t>{0, 2}, {1, 2}, 1)).binary());
}

TEST(DataSet, ViewsHaveTheSameNumbersAndNoMemory) {
  const std::vector<std::uint8_t> bytes = {0, 7, 255, 3, 0, 1};
  const std::vector<float> floats(bytes.begin(), bytes.end());
  const std::vector<double> doubles(bytes.begin(), bytes.end());
  const ImageShape shape{1, 3};
  const Matrix<double> wanted = everything(DataSet(doubles, shape));
  const DataSet views[] = {DataSet(std::span(bytes), shape), DataSet(std::span(floats), shape),
                           DataSet(std::span(doubles), shape)};
  for (const DataSet& view : views) {
    EXPECT_EQ(view.size(), 2);
    EXPECT_EQ(view.memory(), 0u);
    EXPECT_THAT(everything(view).view().flat(), ::testing::ElementsAreArray(wanted.view().flat()));
    EXPECT_THAT(everything(view.slice(1, 2)).view().flat(), ElementsAre(3, 0, 1));
    EXPECT_FALSE(packed_if_binary(view).binary());
  }
  EXPECT_EQ(views[0].bytes().data(), bytes.data());
  EXPECT_TRUE(views[1].bytes().empty());
  const std::vector<double> bits = {0, 1, 1};
  EXPECT_TRUE(packed_if_binary(DataSet(std::span(bits), shape)).binary());
  EXPECT_THROW(DataSet(std::span(bits), ImageShape{1, 2}), InputError);
}

TEST(DataSet, SparseRows) {
  const std::vector<std::int64_t> begin = {0, 2, 2, 3};
  const std::vector<std::int32_t> column = {0, 3, 1};
  std::vector<double> value = {5, 2, 7};
  const DataSet data(SparseRows{begin, column, value}, {1, 4});
  EXPECT_EQ(data.size(), 3);
  EXPECT_EQ(data.memory(), 0u);
  EXPECT_THAT(everything(data).view().flat(), ElementsAre(5, 0, 0, 2, 0, 0, 0, 0, 0, 7, 0, 0));
  EXPECT_THAT(everything(data.slice(0, 2)).view().flat(), ElementsAre(5, 0, 0, 2, 0, 0, 0, 0));
  EXPECT_FALSE(packed_if_binary(data).binary());
  value = {1, 1, 1};
  const DataSet bits = packed_if_binary(data);
  ASSERT_TRUE(bits.binary());
  EXPECT_THAT(everything(bits).view().flat(), ElementsAre(1, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0));
  const std::vector<std::int64_t> wrong = {0, 3, 2, 3};
  EXPECT_THROW(DataSet(SparseRows{wrong, column, value}, {1, 4}), InputError);
  EXPECT_THROW(DataSet(SparseRows{begin, column, value}, {1, 3}), InputError);  // there is a column 3
  EXPECT_THROW(DataSet(SparseRows{begin, {}, value}, {1, 4}), InputError);
}

TEST(DataSet, AnEmptyOneIsHarmless) {
  const DataSet none;
  EXPECT_EQ(none.size(), 0);
  EXPECT_EQ(none.dimension(), 0);
  EXPECT_EQ(none.memory(), 0u);
}

// Holding data out does not make bytes eight times as large, nor change their values.
TEST(Split, BytesStayBytes) {
  std::vector<std::uint8_t> bytes;
  for (int i = 0; i < 60; ++i) bytes.push_back(static_cast<std::uint8_t>(4 * i));
  for (const double scale : {1.0, 1 / 255.0}) {
    const DataSplits data = splits_of({.name = "x", .binarization = Binarization::none, .split = 0.3},
                                      DataSet(bytes, {2, 3}, scale), {}, {});
    ASSERT_EQ(data.train.size(), 7);
    ASSERT_EQ(data.test.size(), 3);
    EXPECT_EQ(data.train.memory(), 42u);
    EXPECT_EQ(data.test.memory(), 18u);
    EXPECT_EQ(data.train.scale(), scale);
    for (int i = 0; i < 7; ++i)
      EXPECT_EQ(data.train.bytes()[static_cast<std::size_t>(6 * i)], 24 * data.rows.train[static_cast<std::size_t>(i)]);
    for (int i = 0; i < 3; ++i)
      EXPECT_EQ(data.test.bytes()[static_cast<std::size_t>(6 * i)], 24 * data.rows.test[static_cast<std::size_t>(i)]);
  }
}

TEST(Binarization, ThresholdIsOverOneHalf) {
  const DataSet data(std::vector<std::uint8_t>{0, 127, 128, 255}, {1, 4}, 1 / 255.0);
  EXPECT_EQ(binarize_threshold(data).bits()->row(0)[0], 0b1100u);
  const DataSet numbers(std::vector<float>{0, 0.5f, 0.51f, 1}, {1, 4});
  EXPECT_EQ(binarize_threshold(numbers).bits()->row(0)[0], 0b1100u);
  EXPECT_THAT(input_error([] {
                binarize_threshold(DataSet(std::vector<float>{0, 2}, {1, 2}));
              }),
              HasSubstr("value 1 of datum 0 is 2"));
}

TEST(Binarization, StochasticBitsHaveTheLevelAsTheirMean) {
  constexpr int size = 500;
  constexpr ImageShape shape{28, 28};
  const double n = size * shape.pixels();
  for (const std::uint8_t level : {0, 1, 64, 128, 200, 254, 255}) {
    const auto bits = everything(binarize_stochastic(grey(level, size, shape), {11, 0}));
    double sum = 0;
    for (const double bit : bits.view().flat()) sum += bit;
    const double p = level / 255.0;
    EXPECT_NEAR(sum / n, p, 4 * std::sqrt(p * (1 - p) / n)) << int{level};
  }
}

TEST(Binarization, NeighbouringBitsAreUncorrelated) {
  const auto bits = everything(binarize_stochastic(grey(128, 500, {28, 28}), {11, 0}));
  const double p = 128 / 255.0, n = 499.0 * 783;
  double pixels = 0, data = 0;
  for (int datum = 0; datum < 499; ++datum)
    for (int i = 0; i < 783; ++i) {
      pixels += (bits(i, datum) - p) * (bits(i + 1, datum) - p);
      data += (bits(i, datum) - p) * (bits(i, datum + 1) - p);
    }
  const double error = p * (1 - p) / std::sqrt(n);
  EXPECT_NEAR(pixels / n, 0, 4 * error);
  EXPECT_NEAR(data / n, 0, 4 * error);
}

TEST(Binarization, StochasticBitsAreAFunctionOfSeedPartDatumAndPixel) {
  const DataSet many = grey(100, 20, {5, 5}), few = grey(100, 7, {5, 5});
  const auto words = [](const DataSet& data, int datum) { return data.bits()->row(datum)[0]; };
  const DataSet all = binarize_stochastic(many, {1, 0});
  const DataSet again = binarize_stochastic(few, {1, 0});
  int other_seed = 0, other_part = 0;
  for (int datum = 0; datum < few.size(); ++datum) {
    EXPECT_EQ(words(all, datum), words(again, datum));
    other_seed += words(all, datum) != words(binarize_stochastic(few, {2, 0}), datum);
    other_part += words(all, datum) != words(binarize_stochastic(few, {1, 1}), datum);
  }
  EXPECT_EQ(other_seed, few.size());
  EXPECT_EQ(other_part, few.size());
}

TEST(Binarization, Names) {
  for (const auto value :
       {Binarization::automatic, Binarization::none, Binarization::threshold, Binarization::stochastic})
    EXPECT_EQ(binarization_named(name_of(value)), value);
  EXPECT_THAT(input_error([] { binarization_named("treshold"); }), HasSubstr("did you mean 'threshold'?"));
}

TEST(Synthetic, ADatumIsAFunctionOfItsNumber) {
  const DataSet all = synthetic_data(5, 0, 30), part = synthetic_data(5, 10, 20), other = synthetic_data(6, 0, 30);
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(std::ranges::equal(all.bits()->row(10 + i), part.bits()->row(i)));
    EXPECT_FALSE(std::ranges::equal(all.bits()->row(i), other.bits()->row(i)));
  }
  const auto bits = everything(synthetic_data(5, 0, 1000));
  double lit = 0;
  for (const double bit : bits.view().flat()) lit += bit;
  EXPECT_GT(lit / (1000 * 784), 0.05);
  EXPECT_LT(lit / (1000 * 784), 0.25);
}

TEST(Picture, PutsImagesSideBySide) {
  const DataSet data(std::vector<std::uint8_t>{0, 255, 128, 0, 255, 255, 0, 0, 1, 2, 3, 4}, {2, 2}, 1 / 255.0);
  const Picture picture = picture_of(data, 3, 2);
  EXPECT_EQ(picture.rows, 5);
  EXPECT_EQ(picture.cols, 5);
  EXPECT_THAT(picture.levels, ElementsAre(0, 255, 96, 255, 255, 128, 0, 96, 0, 0, 96, 96, 96, 96, 96, 1, 2, 96, 96, 96,
                                          3, 4, 96, 96, 96));
  EXPECT_EQ(text_of(picture_of(data, 2, 2), TextColour::none), "▄▀ ▀▀\n");
  EXPECT_THAT(text_of(picture, TextColour::grey), HasSubstr("\x1b[38;5;232;48;5;243m▀"));
  EXPECT_THAT(input_error([&] { picture_of(data, 4, 2); }), HasSubstr("from 1 to 3"));
}

using PngFile = Folder;

TEST_F(PngFile, HoldsThePicture) {
  const auto file = folder_ / "digits.png";
  write_png(picture_of(synthetic_data(1, 0, 9), 9, 3), file);
  const Bytes bytes = read_bytes(file);
  const std::vector<std::uint8_t> header(bytes.begin(), bytes.begin() + 26);
  EXPECT_THAT(header, ElementsAre(0x89, 'P', 'N', 'G', 13, 10, 26, 10, 0, 0, 0, 13, 'I', 'H', 'D', 'R', 0, 0, 0, 86, 0,
                                  0, 0, 86, 8, 0));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
  EXPECT_THROW(write_png(picture_of(synthetic_data(1, 0, 9), 9, 3), folder_ / "none" / "a.png"), Error);
}

}  // namespace
}  // namespace hone
