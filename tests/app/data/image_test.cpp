// Colour images, JPEG files and labels.

#include <gmock/gmock.h>

#include "app/data/labels.hpp"
#include "app/data/load.hpp"
#include "app/data/picture.hpp"
#include "hone/base/file.hpp"
#include "tests/app/data/files.hpp"

namespace hone {
namespace {

using namespace test;
using testing::ElementsAre;
using testing::HasSubstr;

// 2 × 2 pixels, each red, green, blue; and 8 × 8 grey ones of level 200, as libjpeg compresses them.
const Picture colours{2, 2, 3, {255, 0, 0, 0, 255, 0, 0, 0, 255, 10, 20, 30}};
Bytes grey_jpeg() {
  Bytes bytes = {0xFF, 0xD8, 0xFF, 0xDB, 0x00, 0x43, 0x00};
  bytes.insert(bytes.end(), 64, 1);  // quantization by 1
  const Bytes frame = {0xFF, 0xC0, 0x00, 0x0B, 0x08, 0x00, 0x08, 0x00, 0x08, 0x01, 0x01, 0x11, 0x00};
  // Huffman codes of one symbol each: ten bits of DC follow; AC ends at once
  const Bytes dc = {0xFF, 0xC4, 0x00, 0x14, 0x00, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x0A};
  const Bytes ac = {0xFF, 0xC4, 0x00, 0x14, 0x10, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x00};
  const Bytes scan = {0xFF, 0xDA, 0x00, 0x08, 0x01, 0x01, 0x00, 0x00, 0x3F, 0x00};
  // 8 · (200 − 128) = 576 = 1001000000b: code 0, these ten bits, code 0, ones to fill
  const Bytes data = {0x48, 0x0F, 0xFF, 0xD9};
  return bytes + frame + dc + ac + scan + data;
}

TEST(Images, ColoursSurvivePng) {
  const TemporaryFolder folder;
  write_png(colours, folder.path() / "a.png");
  const std::string text = read_file(folder.path() / "a.png");
  const Picture found = read_image(Bytes(text.begin(), text.end()), "a.png");
  EXPECT_EQ(found.channels, 3);
  EXPECT_EQ(found.levels, colours.levels);
  write_png(colours, folder.path() / "b.PNG");
  const DataSet data = read_data_file(folder.path().string());
  EXPECT_EQ(data.size(), 2);
  EXPECT_EQ(data.shape().channels, 3);
  EXPECT_EQ(data.dimension(), 12);
  EXPECT_TRUE(data.shape().drawable());
  const Picture grid = picture_of(data, 2, 2);
  EXPECT_EQ(grid.channels, 3);
  EXPECT_EQ(grid.cols, 5);
  EXPECT_THAT(std::vector(grid.levels.begin(), grid.levels.begin() + 9), ElementsAre(255, 0, 0, 0, 255, 0, 96, 96, 96));
  write_png({2, 2, 1, {1, 2, 3, 4}}, folder.path() / "grey.png");
  EXPECT_THAT(input_error([&] { read_data_file(folder.path().string()); }), HasSubstr("grey.png is grey, but"));
}

TEST(Images, JpegIsReadAndDamageIsRefused) {
  const Bytes bytes = grey_jpeg();
  const Picture picture = read_image(bytes, "x.jpg");
  EXPECT_EQ(picture.rows, 8);
  EXPECT_EQ(picture.channels, 1);
  EXPECT_EQ(picture.levels, Bytes(64, 200));
  Bytes cut(bytes.begin(), bytes.end() - 4);
  EXPECT_THAT(input_error([&] { read_image(cut, "x.jpg"); }), HasSubstr("x.jpg: a damaged JPEG image: "));
  Bytes large = bytes;
  large[76] = 0xFF;  // rows
  EXPECT_THAT(input_error([&] { read_image(large, "x.jpg"); }), HasSubstr("at most 8192 × 8192 pixels"));
  EXPECT_THAT(input_error([&] { read_image(bytes_of("GIF89a"), "x.gif"); }), HasSubstr("not a PNG or JPEG image"));
}

TEST(Images, ShapeSaysThatRowsAreColourImages) {
  const TemporaryFolder folder;
  write_file(folder.path() / "x.csv", "1,2,3,4,5,6,7,8,9,10,11,12\n");
  const std::string file = (folder.path() / "x.csv").string();
  EXPECT_EQ(read_data_file(file, {.shape = {2, 2, 3}}).shape().channels, 3);
  EXPECT_EQ(read_data_file(file, {.shape = {3, 4}}).shape().channels, 1);
  for (const std::vector<int>& bad : {std::vector{2, 2}, {2, 3, 2}, {12}, {2, 2, 3, 1}})
    EXPECT_THROW(read_data_file(file, {.shape = bad}), KeyError);
}

TEST(OtherFiles, AreRefusedWithAWayOut) {
  const TemporaryFolder folder;
  const auto fault = [&](const char* name) {
    write_file(folder.path() / name, "anything");
    return input_error([&] { read_data_file((folder.path() / name).string()); });
  };
  EXPECT_THAT(fault("x.parquet"), HasSubstr("read_parquet"));
  EXPECT_THAT(fault("x.parquet"), HasSubstr("x.csv', index=False"));
  EXPECT_THAT(fault("x.h5"), HasSubstr("numpy.save"));
  EXPECT_THAT(fault("x.jpg"), HasSubstr("expected a folder or a .zip of images"));
}

TEST(Labels, FromFilesAndColumns) {
  const TemporaryFolder folder;
  const auto path = [&](const char* name) { return (folder.path() / name).string(); };
  write_file(folder.path() / "a.txt", "kind\ncat\ndog\r\n");
  write_file(folder.path() / "l.npy", npy("{'descr': '<i8', 'fortran_order': False, 'shape': (2,)}",
                                          {3, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_THAT(read_labels(path("a.txt"), 2), ElementsAre("cat", "dog"));
  EXPECT_THAT(read_labels(path("a.txt"), 3), ElementsAre("kind", "cat", "dog"));
  EXPECT_THAT(read_labels(path("l.npy"), 2), ElementsAre("3", "7"));
  EXPECT_THAT(input_error([&] { read_labels(path("a.txt"), 5); }),
              HasSubstr("expected 5 labels, one per datum, found 3"));
  write_file(folder.path() / "x.csv", "a,kind,b\n1,cat,2\n3,dog,\n");
  DataSplits data = load_data({.name = path("x.csv"), .missing = Missing::ignored, .labels = "kind"});
  EXPECT_THAT(data.labels.train, ElementsAre("cat", "dog"));
  EXPECT_EQ(data.train.dimension(), 2);
  write_file(folder.path() / "y.csv", "a,b\n1,2\n3,4\n");
  EXPECT_THROW(load_data({.name = path("y.csv"), .labels = "colour"}), KeyError);
  EXPECT_THAT(input_error([&] { load_data({.name = path("x.csv"), .labels = "kind"}); }),
              HasSubstr("line 3: column 3 (b): a missing value"));
}

TEST(Labels, FollowTheirDataIntoEveryPart) {
  const TemporaryFolder folder;
  std::string rows = "x,kind\n";
  for (int i = 0; i < 40; ++i) rows += std::to_string(i) + "," + std::to_string(i) + "\n";
  write_file(folder.path() / "x.csv", rows);
  const DataSplits data =
      load_data({.name = (folder.path() / "x.csv").string(), .split = 0.25, .validation_split = 0.1, .labels = "kind"});
  EXPECT_EQ(data.test.size(), 10);
  EXPECT_EQ(data.validation.size(), 3);
  EXPECT_EQ(data.train.size(), 27);
  const auto check = [](const DataSet& part, const std::vector<std::string>& labels) {
    ASSERT_EQ(static_cast<std::size_t>(part.size()), labels.size());
    Matrix<double> x(1, 1);
    for (int n = 0; n < part.size(); ++n) {
      part.expand(std::span<const int>(&n, 1), x.view());
      EXPECT_EQ(std::to_string(static_cast<int>(x(0, 0))), labels[static_cast<std::size_t>(n)]);
    }
  };
  check(data.train, data.labels.train);
  check(data.validation, data.labels.validation);
  check(data.test, data.labels.test);
}

}  // namespace
}  // namespace hone
