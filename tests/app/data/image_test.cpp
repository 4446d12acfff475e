// Colour images, JPEG files and labels.

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>

#include "app/data/labels.hpp"
#include "app/data/load.hpp"
#include "app/data/picture.hpp"
#include "hone/base/file.hpp"
#include "tests/app/data/files.hpp"

namespace hone {
namespace {

using namespace test;
namespace fs = std::filesystem;
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

// One plane per colour, as PyTorch has them, read as if pixels had three values each.
TEST(Images, PlanesOfColourAreRefused) {
  const TemporaryFolder folder;
  const std::string planes = (folder.path() / "x.npy").string();
  const Bytes bytes = npy("{'descr': '|u1', 'fortran_order': False, 'shape': (1, 3, 2, 2)}", Bytes(12, 7));
  write_file(planes, std::string(bytes.begin(), bytes.end()));
  EXPECT_THAT(input_error([&] {
                read_data_file(planes, {.shape = {2, 2, 3}});
              }),
              HasSubstr("shape: the file's data are (3, 2, 2), one plane per colour; expected the three values of a "
                        "pixel beside each other, (2, 2, 3): numpy.transpose(x, (0, 2, 3, 1))"));
  EXPECT_THAT(input_error([&] { read_data_file(planes, {.planes = ColourPlanes::refused}); }),
              HasSubstr("numpy.transpose(x, (0, 2, 3, 1)); if they are no images: shape = [1, 12]"));
  EXPECT_EQ(read_data_file(planes).shape().cols, 12) << "of a model that was trained on them";
  EXPECT_EQ(read_data_file(planes, {.shape = {3, 4}}).shape().rows, 3);
  EXPECT_EQ(read_data_file(planes, {.shape = {1, 12}}).shape().cols, 12);
}

TEST(Images, OnePlaneOfGreyLevelsIsAnImage) {
  const TemporaryFolder folder;
  const std::string plane = (folder.path() / "x.npy").string();
  const Bytes bytes = npy("{'descr': '|u1', 'fortran_order': False, 'shape': (1, 1, 3, 4)}", Bytes(12, 7));
  write_file(plane, std::string(bytes.begin(), bytes.end()));
  const ImageShape shape = read_data_file(plane).shape();
  EXPECT_EQ(shape.rows, 3);
  EXPECT_EQ(shape.cols, 4);
  EXPECT_EQ(shape.channels, 1);
}

// Finder adds such files to folders and archives.
TEST(Images, HiddenFilesAreLeftOut) {
  const TemporaryFolder folder;
  const fs::path images = folder.path() / "images";
  for (const char* inside : {"a", "__MACOSX", ".hidden"}) fs::create_directories(images / inside);
  write_png(colours, images / "a" / "1.png");
  for (const char* name : {"._2.png", ".hidden/3.png", "__MACOSX/4.png"}) write_file(images / name, "no image");
  EXPECT_EQ(read_data_file(images.string()).size(), 1);
  const auto archived = [&](const std::string& name) {
    const std::string png = read_file(images / "a" / "1.png");
    const Bytes bytes = zip_with(name, Bytes(png.begin(), png.end()));
    write_file(folder.path() / "x.zip", std::string(bytes.begin(), bytes.end()));
    return input_error([&] { read_data_file((folder.path() / "x.zip").string()); });
  };
  EXPECT_EQ(archived("a/1.png"), "");
  for (const char* hidden : {"__MACOSX/a/1.png", "a/._1.png", ".a/1.png"})
    EXPECT_THAT(archived(hidden), HasSubstr("x.zip: no image")) << hidden;
}

// Reading a pipe would wait for somebody who writes.
TEST(Images, PipesAreRefused) {
  const TemporaryFolder folder;
  for (const std::string name : {"x.zip", "x.npz", "a.png"}) {
    const std::filesystem::path pipe = folder.path() / name;
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    const std::string data = name == "a.png" ? folder.path().string() : pipe.string();
    EXPECT_THAT(input_error([&] { read_data_file(data); }), HasSubstr(name + ": expected a regular file"));
  }
}

TEST(Images, AFolderThatCannotBeReadIsNamed) {
  const TemporaryFolder folder;
  fs::create_directories(folder.path() / "closed");
  write_png(colours, folder.path() / "1.png");
  fs::permissions(folder.path() / "closed", fs::perms::none);
  fs::permissions(folder.path(), fs::perms(0055), fs::perm_options::add);
  const uid_t user = geteuid();
  if (user == 0 && seteuid(65534) != 0) GTEST_SKIP() << "root reads everything and cannot become nobody";
  const std::string error = input_error([&] { read_data_file(folder.path().string()); });
  if (user == 0) {
    ASSERT_EQ(seteuid(user), 0);
  }
  fs::permissions(folder.path() / "closed", fs::perms::owner_all);
  EXPECT_EQ(error, (folder.path() / "closed").string() + ": cannot be read: Permission denied");
}

TEST(Binarization, TakesWholeNumbersOfAnyTypeAsBytes) {
  const TemporaryFolder folder;
  const auto loaded = [&](const std::string& type, const Bytes& values) {
    const Bytes bytes = npy("{'descr': '" + type + "', 'fortran_order': False, 'shape': (1, 4)}", values);
    write_file(folder.path() / "x.npy", std::string(bytes.begin(), bytes.end()));
    return load_data({.name = (folder.path() / "x.npy").string(), .binarization = Binarization::threshold}).train;
  };
  for (const DataSet& data : {loaded("<f8", raw<double>({0, 200, 255, 20})),
                              loaded("<f4", raw<float>({0, 200, 255, 20})), loaded("|u1", {0, 200, 255, 20})}) {
    Matrix<double> bits(4, 1);
    data.expand(std::vector{0}, bits.view());
    EXPECT_THAT(bits.view().flat(), ElementsAre(0, 1, 1, 0));
  }
  EXPECT_THAT(input_error([&] {
                loaded("<f8", raw<double>({0, 200, 255.5, 20}));
              }),
              HasSubstr("value 1 of datum 0 is 200: binarization needs values in [0, 1], or whole numbers from 0 to "
                        "255 throughout; divide the data, or"));
}

TEST(Pictures, OfOtherNumbersReachFromTheLeastToTheLargest) {
  const std::vector<double> usual = {0, 0.25, 1}, other = {-3, 1, 5, std::nan("")}, alike = {4, 4};
  EXPECT_TRUE(range_of(usual).usual());
  EXPECT_EQ(range_of(other).low, -3);
  EXPECT_EQ(range_of(other).high, 5);
  EXPECT_TRUE(range_of(std::vector{-0.4, 1.4}, 0.5).usual());
  const DataSet data(std::vector<double>{-3, 1, 5, 5}, ImageShape{2, 2});
  EXPECT_THAT(picture_of(data, 1, 1, range_of(data, 1)).levels, ElementsAre(0, 128, 255, 255));
  EXPECT_EQ(range_of(alike).low, 3);
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
  write_file(folder.path() / "z.csv", "a,species.name\n1,cat\n2,dog\n");
  EXPECT_THAT(load_data({.name = path("z.csv"), .labels = "species.name"}).labels.train, ElementsAre("cat", "dog"));
  EXPECT_THAT(input_error([&] { load_data({.name = path("z.csv"), .labels = "species.nam"}); }),
              HasSubstr("there is no column 'species.nam', which labels names; did you mean 'species.name'?"));
  EXPECT_THAT(input_error([&] { load_data({.name = path("y.csv"), .labels = "kinds.txt"}); }),
              HasSubstr("y.csv has no column 'kinds.txt', and there is no such file"));
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
  for (std::size_t i = 0; i < data.rows.test.size(); ++i)  // the column has the row numbers
    EXPECT_EQ(data.labels.test[i], std::to_string(data.rows.test[i]));
  EXPECT_EQ(data.rows.test.size(), 10u);
  EXPECT_EQ(data.labels.validation[2], std::to_string(data.rows.validation[2]));
  check(data.train, data.labels.train);
  check(data.validation, data.labels.validation);
  check(data.test, data.labels.test);
}

}  // namespace
}  // namespace hone
