#include "app/data/lookup.hpp"

#include <gmock/gmock.h>

#include <cstdlib>
#include <optional>

#include "app/data/check.hpp"
#include "app/data/load.hpp"
#include "tests/app/data/files.hpp"

namespace hone {
namespace {

using namespace hone::test;
using ::testing::HasSubstr;

// Sets (or unsets) an environment variable until the end of the scope.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    value ? setenv(name, value, 1) : unsetenv(name);
  }
  ~Variable() { before_ ? setenv(name_, before_->c_str(), 1) : unsetenv(name_); }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

DataSetInfo tiny() {
  const auto file = [](std::string stem, int items) {
    return DataFile{.name = stem, .published = stem + ".gz", .format = FileFormat::idx, .items = items, .sha256 = ""};
  };
  return {"tiny", "", {3, 2}, 4, 1, 2, {file("train", 5), file("test", 2)}, {"https://example.org/"}, "tiny-package"};
}

std::vector<std::string> meanings(const std::vector<Place>& places) {
  std::vector<std::string> names;
  for (const Place& place : places) names.push_back(place.folder.string() + " " + place.meaning);
  return names;
}

TEST(SearchPlaces, Order) {
  const Variable data("HONE_DATA_DIR", "/data"), cache("XDG_CACHE_HOME", "/cache"), home("HOME", "/home/me");
  EXPECT_THAT(meanings(search_places("/given")),
              ::testing::ElementsAre("/given --data-dir", "/data HONE_DATA_DIR", "/cache/hone cache",
                                     "/usr/local/share/datasets system", "/usr/share/datasets system"));
  EXPECT_EQ(download_place("/given"), "/given");
  EXPECT_EQ(download_place(), "/data");
}

TEST(SearchPlaces, WithoutVariables) {
  const Variable data("HONE_DATA_DIR", nullptr), cache("XDG_CACHE_HOME", "");
  {
    const Variable home("HOME", "/home/me");
    EXPECT_EQ(download_place(), "/home/me/.cache/hone");
  }
  const Variable home("HOME", nullptr);
  EXPECT_EQ(search_places().size(), 2u);
  EXPECT_THAT(input_error([] { download_place(); }), HasSubstr("give --data-dir"));
}

using Lookup = Folder;

TEST_F(Lookup, TheFirstPlaceThatHasEverythingWins) {
  write("a/tiny/train", idx_images(5, 3, 2));
  write("b/tiny/train", idx_images(5, 3, 2));
  write("b/tiny/test.gz", gzip(idx_images(2, 3, 2)));
  write("c/tiny/train.gz", gzip(idx_images(5, 3, 2)));
  write("c/tiny/test", idx_images(2, 3, 2));
  const std::vector<Place> places = {
      {folder_ / "none", "x"}, {folder_ / "a", "x"}, {folder_ / "b", "x"}, {folder_ / "c", "x"}};
  const auto found = find_data(tiny(), places);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->folder, folder_ / "b/tiny");
  EXPECT_EQ(found->files[0], folder_ / "b/tiny/train");
  EXPECT_EQ(found->files[1], folder_ / "b/tiny/test.gz");
}

TEST_F(Lookup, NotFoundListsPlacesAndCommands) {
  write("a/tiny/train", idx_images(5, 3, 2));
  std::filesystem::create_directories(folder_ / "b");
  const std::vector<Place> places = {
      {folder_ / "a", "--data-dir"}, {folder_ / "b", "cache"}, {folder_ / "c", "system"}};
  const std::string message = input_error([&] { require_data(tiny(), places); });
  EXPECT_THAT(message, HasSubstr("data set 'tiny' was not found"));
  EXPECT_THAT(message, HasSubstr("a (--data-dir): " + (folder_ / "a/tiny").string() + " lacks test"));
  EXPECT_THAT(message, HasSubstr("b (cache): has no folder tiny"));
  EXPECT_THAT(message, HasSubstr("c (system): no such folder"));
  EXPECT_THAT(message, HasSubstr("hone data get tiny"));
  EXPECT_THAT(message, HasSubstr("apt-get install tiny-package"));
}

TEST_F(Lookup, LoadsAndSplits) {
  write("tiny/train", idx_images(5, 3, 2));
  write("tiny/test.gz", gzip(idx_images(2, 3, 2)));
  const std::vector<Place> places = {{folder_, "x"}};
  const DataSplits none = load_data(tiny(), {.name = "tiny", .binarization = Binarization::none}, places);
  EXPECT_EQ(none.train.size(), 4);
  EXPECT_EQ(none.validation.size(), 1);
  EXPECT_EQ(none.test.size(), 2);
  EXPECT_EQ(none.validation.bytes()[0], static_cast<std::uint8_t>(7 * 24));
  EXPECT_THAT(none.origin, HasSubstr("not binarized"));
  const DataSplits bits = load_data(tiny(), {.name = "tiny", .seed = 9}, places);
  EXPECT_TRUE(bits.train.binary());
  EXPECT_THAT(bits.origin, HasSubstr("binarized once at random with seed 9"));
}

TEST_F(Lookup, FilesOfAnotherSizeAreErrors) {
  write("tiny/train", idx_images(4, 3, 2));
  write("tiny/test", idx_images(2, 3, 2));
  const std::vector<Place> places = {{folder_, "x"}};
  EXPECT_THAT(input_error([&] { load_data(tiny(), {}, places); }),
              HasSubstr("tiny/train: expected 5 images of 3 × 2 pixels for 'tiny', found 4 of 3 × 2"));
  write("tiny/train", idx_images(5, 2, 3));
  EXPECT_THAT(input_error([&] { load_data(tiny(), {}, places); }), HasSubstr("found 5 of 2 × 3"));
}

TEST_F(Lookup, ChecksumsAreOfTheContent) {
  DataSetInfo info = tiny();
  const auto plain = write("tiny/train", idx_images(5, 3, 2));
  const auto packed = write("tiny/train.gz", gzip(idx_images(5, 3, 2)));
  EXPECT_EQ(content_sha256(plain), content_sha256(packed));
  info.files[0].sha256 = content_sha256(plain);
  check_file(info, info.files[0], plain);
  check_file(info, info.files[0], packed);
  Bytes other = idx_images(5, 3, 2);
  other.back() ^= 1;
  EXPECT_THAT(input_error([&] { check_file(info, info.files[0], write("tiny/train", other)); }),
              HasSubstr("tiny/train: wrong checksum"));
}

TEST_F(Lookup, MnistPrefersTheFixedFiles) {
  std::string line;
  for (int i = 0; i < 784; ++i) line += i % 2 ? "1 " : "0 ";
  line.back() = '\n';
  const auto lines = [&](int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += line;
    return gzip(bytes_of(text));
  };
  write("mnist/binarized_mnist_train.amat.gz", lines(50'000));
  write("mnist/binarized_mnist_valid.amat.gz", lines(10'000));
  write("mnist/binarized_mnist_test.amat.gz", lines(10'000));
  const std::vector<Place> places = {{folder_, "x"}};
  const DataSplits splits = load_data(data_set_named("mnist"), {.name = "mnist"}, places);
  EXPECT_THAT(splits.origin, HasSubstr("the fixed binarization in the .amat files of "));
  EXPECT_EQ(splits.train.size(), 50'000);
  EXPECT_EQ(splits.validation.size(), 10'000);
  EXPECT_EQ(splits.test.size(), 10'000);
  EXPECT_TRUE((*splits.test.bits())(9'999, 783));
}

TEST_F(Lookup, PathsAreReadAsFiles) {
  const auto images = write("some/images-idx3-ubyte.gz", gzip(idx_images(5, 3, 2)));
  EXPECT_EQ(load_data({.name = images.string()}).train.size(), 5);
  const auto text = write("bits.amat", bytes_of("0 1\n1 1\n"));
  EXPECT_EQ(load_data({.name = text.string()}).train.dimension(), 2);
  const auto matrix =
      write("m.npy", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)}", raw<float>({0.25f, 1, 2, 3})));
  EXPECT_FALSE(load_data({.name = matrix.string()}).train.binary());
  EXPECT_THAT(input_error([&] { load_data({.name = (folder_ / "no.npy").string()}); }), HasSubstr("no such file"));
  EXPECT_THAT(input_error([&] { load_data({.name = "mnits"}); }), HasSubstr("expected one of mnist, binarized-mnist"));
  const auto labels = write("labels-idx1-ubyte", idx_header({2}) + Bytes{1, 2});
  EXPECT_THAT(input_error([&] { load_data({.name = labels.string()}); }), HasSubstr("expected images"));
}

// The real files, if this machine has them.
void check_real(const std::string& name, int train, int validation, double lit_low, double lit_high) {
  const DataSetInfo& info = data_set_named(name);
  const auto found = find_data(info, search_places());
  if (!found) GTEST_SKIP() << "the data set " << name << " is not on this machine";
  for (std::size_t i = 0; i < info.files.size(); ++i) check_file(info, info.files[i], found->files[i]);
  const DataSplits splits = load_data({.name = name});
  EXPECT_EQ(splits.train.size(), train);
  EXPECT_EQ(splits.validation.size(), validation);
  EXPECT_EQ(splits.test.size(), 10'000);
  ASSERT_TRUE(splits.train.binary());
  double lit = 0;
  for (int datum = 0; datum < 2000; ++datum)
    for (int i = 0; i < 784; ++i) lit += (*splits.train.bits())(datum, i);
  EXPECT_GT(lit / (2000 * 784), lit_low);
  EXPECT_LT(lit / (2000 * 784), lit_high);
}

TEST(RealData, Mnist) { check_real("mnist", 50'000, 10'000, 0.12, 0.14); }
TEST(RealData, BinarizedMnist) { check_real("binarized-mnist", 50'000, 10'000, 0.12, 0.14); }
TEST(RealData, FashionMnist) { check_real("fashion-mnist", 60'000, 0, 0.2, 0.4); }

TEST(RealData, SyntheticIsAlwaysThere) {
  const DataSplits splits = load_data({.name = "synthetic"});
  EXPECT_EQ(splits.train.size(), 5'000);
  EXPECT_EQ(splits.validation.size(), 1'000);
  EXPECT_EQ(splits.test.size(), 1'000);
}

}  // namespace
}  // namespace hone
