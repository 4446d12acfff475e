#include <gmock/gmock.h>
#include <unistd.h>

#include <limits>

#include "app/data/amat.hpp"
#include "app/data/csv.hpp"
#include "app/data/idx.hpp"
#include "app/data/matrix_market.hpp"
#include "app/data/npy.hpp"
#include "app/data/zip.hpp"
#include "hone/base/error.hpp"
#include "hone/base/sha256.hpp"
#include "tests/app/data/files.hpp"

namespace hone {
namespace {

using namespace hone::test;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

IdxArray idx_from(const Bytes& bytes) {
  ByteSource source(bytes, "images");
  return read_idx(source);
}

NpyMatrix npy_from(const Bytes& bytes) {
  ByteSource source(bytes, "matrix");
  return read_npy(source);
}

BitRows amat_from(std::string_view text, int dimension = 0) {
  const Bytes bytes = bytes_of(text);
  ByteSource source(bytes, "bits");
  return read_amat(source, dimension);
}

TEST(Sha256, KnownAnswers) {
  const auto sum = [](std::string_view text) {
    Sha256 sha;
    sha.update(bytes_of(text));
    return sha.hex();
  };
  EXPECT_EQ(sum(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sum("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sum("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sum(std::string(1'000'000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PiecesDoNotMatter) {
  Bytes content(1000);
  for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<std::uint8_t>(i * i);
  Sha256 whole;
  whole.update(content);
  const std::string expected = whole.hex();
  for (std::size_t piece = 1; piece < 200; ++piece) {
    Sha256 sum;
    for (std::size_t at = 0; at < content.size(); at += piece)
      sum.update(std::span(content).subspan(at, std::min(piece, content.size() - at)));
    ASSERT_EQ(sum.hex(), expected) << piece;
  }
}

TEST(Idx, PlainAndGzip) {
  const Bytes content = idx_images(5, 3, 2);
  for (const Bytes& bytes : {content, gzip(content)}) {
    const IdxArray array = idx_from(bytes);
    EXPECT_THAT(array.dimensions, ElementsAre(5, 3, 2));
    ASSERT_EQ(array.values.size(), 30u);
    EXPECT_EQ(array.values[29], static_cast<std::uint8_t>(7 * 29));
  }
  EXPECT_THAT(idx_from(idx_header({4}) + Bytes{1, 2, 3, 4}).values, ElementsAre(1, 2, 3, 4));
}

TEST(Idx, GzipMembersMayBeStrungTogether) {
  const Bytes content = idx_images(5, 3, 2);
  const Bytes first(content.begin(), content.begin() + 20), rest(content.begin() + 20, content.end());
  EXPECT_EQ(idx_from(gzip(first) + gzip(rest)).values, idx_from(content).values);
  EXPECT_THAT(input_error([&] { idx_from(gzip(content) + bytes_of("rest")); }), HasSubstr("another gzip member"));
}

TEST(Idx, EveryTruncationIsAnErrorThatNamesFileAndByte) {
  const Bytes content = idx_images(5, 3, 2);
  for (const Bytes& whole : {content, gzip(content)})
    for (std::size_t length = 0; length < whole.size(); ++length) {
      const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
      const std::string message = input_error([&] { idx_from(cut); });
      ASSERT_THAT(message, AllOf(HasSubstr("images: "), HasSubstr("byte "))) << length;
    }
}

TEST(Idx, ABitFlipInGzipIsAnErrorOrHarmless) {
  const Bytes content = idx_images(5, 3, 2);
  const Bytes whole = gzip(content);
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    Bytes flipped = whole;
    flipped[bit / 8] ^= static_cast<std::uint8_t>(1 << bit % 8);
    try {
      ASSERT_EQ(idx_from(flipped).values, idx_from(content).values) << bit;
    } catch (const InputError&) {
    }
  }
}

TEST(Idx, WrongHeaders) {
  const auto message = [](const Bytes& bytes) { return input_error([&] { idx_from(bytes); }); };
  EXPECT_EQ(message({}), "images: byte 0: the file is empty");
  EXPECT_THAT(message(bytes_of("<html>no such file</html>")), HasSubstr("images: byte 0: expected an IDX file"));
  EXPECT_THAT(message({0, 0, 13, 1, 0, 0, 0, 1, 0}), HasSubstr("byte 2: expected type 0x08"));
  EXPECT_THAT(message({0, 0, 8, 0}), HasSubstr("byte 3: expected 1 to 3 dimensions, found 0"));
  EXPECT_THAT(message({0, 0, 8, 4}), HasSubstr("byte 3: expected 1 to 3 dimensions, found 4"));
  EXPECT_THAT(message(idx_header({3, 0, 2})), HasSubstr("byte 8: expected a dimension"));
  EXPECT_THAT(message(idx_images(2, 2, 2) + Bytes{0}), HasSubstr("byte 24: expected the end of the file"));
  EXPECT_THAT(message(gzip(idx_images(2, 2, 2) + Bytes{0})), HasSubstr("byte 24 of the content: expected the end"));
}

TEST(Idx, HugeHeadersAreRefusedBeforeAnythingIsAllocated) {
  const std::uint32_t huge = 0x7FFF'FFFF;
  for (const auto& dimensions : std::vector<std::vector<std::uint32_t>>{
           {huge}, {huge, huge}, {huge, huge, huge}, {1u << 20, 1u << 12, 1}, {0xFFFF'FFFFu, 1, 1}}) {
    const Bytes content = idx_header(dimensions) + Bytes(1000);
    for (const Bytes& bytes : {content, gzip(content)})
      EXPECT_THAT(input_error([&] { idx_from(bytes); }), HasSubstr("images: byte ")) << dimensions.size();
  }
}

TEST(Idx, AGzipBombIsInflatedNoFurtherThanItsHeaderAnnounces) {
  const Bytes bomb = gzip(idx_header({2, 2, 2}) + Bytes(100 << 20));
  ByteSource source(bomb, "bomb");
  EXPECT_THAT(input_error([&] { read_idx(source); }), HasSubstr("expected the end of the file"));
  EXPECT_LE(source.offset(), 25u);
}

using Files = Folder;

TEST_F(Files, AreReadLikeMemory) {
  const Bytes content = idx_images(300, 28, 28);  // longer than a buffer
  for (const Bytes& bytes : {content, gzip(content)}) {
    ByteSource source(write("images", bytes));
    EXPECT_EQ(read_idx(source).values, idx_from(content).values);
  }
}

TEST_F(Files, ThatCannotBeReadAreNamed) {
  const auto message = [](const std::filesystem::path& path) { return input_error([&] { ByteSource source(path); }); };
  EXPECT_THAT(message(folder_ / "none"), HasSubstr("none: no such file"));
  EXPECT_THAT(message(folder_), HasSubstr("expected a regular file, found a folder"));
  EXPECT_THAT(message(write("empty", {})), HasSubstr("empty: byte 0: the file is empty"));
  EXPECT_THAT(message("/dev/zero"), HasSubstr("expected a regular file"));
}

TEST_F(Files, WithoutPermissionAreNamed) {
  const auto path = write("secret", idx_images(1, 1, 1));
  const auto inside = write("closed/file", idx_images(1, 1, 1));
  std::filesystem::permissions(folder_, std::filesystem::perms::all);
  std::filesystem::permissions(path, std::filesystem::perms::none);
  std::filesystem::permissions(inside.parent_path(), std::filesystem::perms::none);
  const uid_t user = geteuid();
  if (user == 0 && seteuid(65534) != 0) GTEST_SKIP() << "root reads everything and cannot become nobody";
  const std::string secret = input_error([&] { ByteSource source(path); });
  const std::string closed = input_error([&] { ByteSource source(inside); });
  ASSERT_EQ(seteuid(user), 0);
  std::filesystem::permissions(inside.parent_path(), std::filesystem::perms::owner_all);
  EXPECT_THAT(secret, HasSubstr("secret: cannot be opened: Permission denied"));
  EXPECT_THAT(closed, HasSubstr("closed/file: cannot be opened: Permission denied"));
}

TEST(Amat, ReadsLinesOfBits) {
  const BitRows rows = amat_from("0 1 1\n1 0 0 \r\n1\t1 1");
  ASSERT_EQ(rows.size(), 3);
  ASSERT_EQ(rows.dimension(), 3);
  EXPECT_EQ(rows.row(0)[0], 0b110u);
  EXPECT_EQ(rows.row(1)[0], 0b001u);
  EXPECT_EQ(rows.row(2)[0], 0b111u);
}

TEST(Amat, WrongTextsNameTheLine) {
  const auto message = [](std::string_view text, int dimension = 3) {
    return input_error([&] { amat_from(text, dimension); });
  };
  EXPECT_THAT(message("0 1 1\n0 1\n"), HasSubstr("bits: line 2 (byte 9): expected 3 numbers per line, found 2"));
  EXPECT_THAT(message("0 1 1\n0 1 0 1\n"), HasSubstr("line 2 (byte 12): expected 3 numbers per line, found more"));
  EXPECT_THAT(message("0 1 2\n"), HasSubstr("line 1 (byte 4): number 3: expected 0 or 1 and a blank, found '2'"));
  EXPECT_THAT(message("0 11 1\n"), HasSubstr("number 2: expected 0 or 1 and a blank, found '1'"));
  EXPECT_THAT(message(std::string_view("0 \0 1\n", 6)), HasSubstr("found byte 0x00"));
  EXPECT_THAT(message("0 1 1\n\n0 1 1\n"), HasSubstr("line 2 (byte 6): expected zeros and ones, found an empty line"));
  EXPECT_THAT(message(" "), HasSubstr("expected lines of zeros and ones, found none"));
  EXPECT_THAT(message("0 1\n0 1 1\n", 0), HasSubstr("line 2"));
}

TEST(Amat, ATruncationInsideALineIsAnError) {
  const std::string text = "0 1 1\n1 0 0\n";
  for (std::size_t length = 0; length < text.size(); ++length) {
    const bool whole_line = length == 5 || length == 6 || length == 11;
    EXPECT_EQ(input_error([&] { amat_from(text.substr(0, length), 3); }).empty(), whole_line) << length;
  }
}

Bytes six_floats(std::uint8_t version) {
  return npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", raw<float>({1, 2, 3, 4, 5, 6}), version);
}

TEST(Npy, TypesVersionsAndOrders) {
  for (const std::uint8_t version : {1, 2, 3}) {
    const auto c = six_floats(version);
    EXPECT_THAT(std::get<1>(npy_from(c).values), ElementsAre(1, 2, 3, 4, 5, 6));
  }
  const auto f = npy("{'shape': (2,3,), \"fortran_order\":True,'descr':'<f8'}", raw<double>({1, 4, 2, 5, 3, 6}));
  const NpyMatrix matrix = npy_from(gzip(f));
  EXPECT_EQ(matrix.rows, 2);
  EXPECT_EQ(matrix.cols, 3);
  EXPECT_EQ(matrix.type, NpyType::float64);
  EXPECT_THAT(std::get<2>(matrix.values), ElementsAre(1, 2, 3, 4, 5, 6));
  const auto b = npy("{'descr': '|b1', 'fortran_order': True, 'shape': (2, 2)}", {1, 0, 1, 0});
  EXPECT_THAT(std::get<0>(npy_from(b).values), ElementsAre(1, 1, 0, 0));
  const auto u = npy("{'descr': '|u1', 'fortran_order': False, 'shape': (1, 3)}", {0, 200, 255});
  EXPECT_THAT(std::get<0>(npy_from(u).values), ElementsAre(0, 200, 255));
}

TEST(Npy, EveryTruncationIsAnErrorThatNamesFileAndByte) {
  const Bytes content = six_floats(1);
  for (const Bytes& whole : {content, gzip(content)})
    for (std::size_t length = 0; length < whole.size(); ++length) {
      const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
      ASSERT_THAT(input_error([&] { npy_from(cut); }), AllOf(HasSubstr("matrix: "), HasSubstr("byte "))) << length;
    }
}

TEST(Npy, WrongFiles) {
  const auto message = [](const Bytes& bytes) { return input_error([&] { npy_from(bytes); }); };
  const auto header = [&](std::string_view text) { return message(npy(text, Bytes(64))); };
  EXPECT_THAT(message(bytes_of("PK\3\4 an archive")), HasSubstr("matrix: byte 0: expected a .npy file"));
  EXPECT_THAT(message(npy("{}", {}, 4)), HasSubstr("byte 6: expected .npy version 1.0, 2.0 or 3.0, found 4.0"));
  EXPECT_THAT(message({0x93, 'N', 'U', 'M', 'P', 'Y', 2, 0, 255, 255, 255, 255}),
              HasSubstr("byte 8: expected a header of at most"));
  EXPECT_THAT(header("{'descr': '>i8', 'fortran_order': False, 'shape': (2, 3)}"),
              HasSubstr("byte 20: expected a type"));
  EXPECT_THAT(header("{'descr': '>i8', 'fortran_order': False, 'shape': (2, 3)}"),
              HasSubstr("in the .npy header, found '>i8'; save x.astype(\"int64\")"));
  EXPECT_THAT(header("{'descr': '<f2', 'fortran_order': False, 'shape': (2, 3)}"), HasSubstr("x.astype(\"float32\")"));
  EXPECT_THAT(header("{'descr': '<c16', 'fortran_order': False, 'shape': (2, 3)}"), HasSubstr("these are no numbers"));
  EXPECT_THAT(header("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 3)}"), HasSubstr("found 0"));
  EXPECT_THAT(header("{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}"), HasSubstr("x.reshape(-1, 1)"));
  EXPECT_THAT(header("{'descr': [('a', '<f4')], 'shape': (2, 3)}"), HasSubstr("expected a type"));
  EXPECT_THAT(header("{'descr': '<f4', 'fortran_order': 1, 'shape': (2, 3)}"), HasSubstr("expected True or False"));
  EXPECT_THAT(header("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}"), HasSubstr("two sizes"));
  EXPECT_THAT(header("{'descr': '<f4', 'fortran_order': False, 'shape': ()}"), HasSubstr("a size from 1"));
  EXPECT_THAT(header("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 65536, 65536)}"),
              HasSubstr("impossible number of values"));
  EXPECT_THAT(header("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 0)}"), HasSubstr("a size from 1"));
  EXPECT_THAT(header("{'descr': '<f4', 'fortran_order': False, 'shape': (2, -3)}"), HasSubstr("a size from 1"));
  EXPECT_THAT(header("{'descr': '<f4', 'fortran_order': False}"), HasSubstr("the key 'shape'"));
  EXPECT_THAT(header("{'descr': '<f4', 'descr': '<f4'}"), HasSubstr("each once"));
  EXPECT_THAT(header("{'descr': '<f4"), HasSubstr("a quoted word with its closing quote"));
  EXPECT_THAT(header("{'descr': '<f4', 'fortran_order': False, 'shape': (2147483647, 2147483647)}"),
              HasSubstr("the header announces"));
  EXPECT_THAT(header("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 1)}"), HasSubstr("expected"));
  EXPECT_THAT(message(npy("{'descr': '|b1', 'fortran_order': False, 'shape': (1, 2)}", {1, 2})),
              HasSubstr("expected a boolean, 0 or 1, found 2"));
  const float infinite = std::numeric_limits<float>::infinity();
  EXPECT_THAT(message(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2)}", raw<float>({1, infinite}))),
              HasSubstr("expected a finite number, found inf (datum 0, position 1)"));
  EXPECT_THAT(message(npy("{'descr': '<i8', 'fortran_order': False, 'shape': (1, 2)}",
                          raw<std::int64_t>({1, std::int64_t{1} << 60}))),
              HasSubstr("expected an integer up to 2^53, found 1152921504606846976"));
}

TEST(Npy, IntegersAndShapes) {
  const auto wide =
      npy_from(npy("{'descr': '<i4', 'fortran_order': False, 'shape': (2, 1, 2)}", raw<std::int32_t>({0, 255, 1, 2})));
  EXPECT_THAT(wide.shape, ElementsAre(1, 2));
  EXPECT_EQ(wide.cols, 2);
  EXPECT_THAT(std::get<0>(wide.values), ElementsAre(0, 255, 1, 2));
  const auto negative =
      npy_from(npy("{'descr': '<i2', 'fortran_order': False, 'shape': (2, 1)}", raw<std::int16_t>({-3, 300})));
  EXPECT_THAT(std::get<2>(negative.values), ElementsAre(-3, 300));
  // a[n, i, j] = 100 n + 10 i + j, first index fastest
  const auto cube = npy_from(npy("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 2, 3)}",
                                 {0, 100, 10, 110, 1, 101, 11, 111, 2, 102, 12, 112}));
  EXPECT_THAT(std::get<0>(cube.values), ElementsAre(0, 1, 2, 10, 11, 12, 100, 101, 102, 110, 111, 112));
}

CsvRows csv_from(std::string_view text) {
  const Bytes bytes = bytes_of(text);
  ByteSource source(bytes, "table");
  return read_csv(source);
}

TEST(Csv, HeadersSeparatorsAndEnds) {
  for (const char* text :
       {"1,2\n3,-4.5", "a,b\r\n1,2\r\n3,-4.5\r\n\n\n", "\xEF\xBB\xBF\"a\";\"b c\"\n+1; 2\n3;-45e-1\n",
        "a\tb\n1\t2\n3\t-4.5\n", "\"a,x\",\"b;;;\"\n1,2\n \"3\" ,-4.5\n"}) {
    const CsvRows table = csv_from(text);
    EXPECT_EQ(table.rows, 2) << text;
    EXPECT_EQ(table.cols, 2) << text;
    EXPECT_THAT(table.values, ElementsAre(1, 2, 3, -4.5)) << text;
  }
  EXPECT_THAT(csv_from("7\n8\n").values, ElementsAre(7, 8));
}

TEST(Csv, TruthValuesAreBits) {
  EXPECT_THAT(csv_from("True,False\nFALSE,TRUE\ntrue,3\n").values, ElementsAre(1, 0, 0, 1, 1, 3));  // no header
  EXPECT_THAT(csv_from("a,b\ntrue,false\n").values, ElementsAre(1, 0));
  EXPECT_THAT(input_error([] { csv_from("1,2\ntrue,yes\n"); }), HasSubstr("line 2: column 2"));
}

TEST(Csv, ErrorsSayWhatTablesOfOthersHave) {
  const auto message = [](std::string_view text) { return input_error([&] { csv_from(text); }); };
  const std::string_view utf16(
      "\xFF\xFE"
      "1\0,\0",
      6);
  EXPECT_THAT(message(utf16), HasSubstr("line 1: expected UTF-8, found UTF-16"));
  for (const char* text : {"1.5 2.5\n3.5 4.5\n", "a|b\n1|2\n"})
    EXPECT_THAT(message(text), HasSubstr("columns are separated by commas, semicolons or tabs")) << text;
  for (const char* text : {"a;b\n1,5;2\n", "a,b\n\"1,234.5\",2\n"})
    EXPECT_THAT(message(text), HasSubstr("line 2: column 1 (a): expected a finite number, found '1,")) << text;
  EXPECT_THAT(message("a;b\n1,5;2\n"), HasSubstr("expected a decimal point"));
  EXPECT_THAT(message("\"a\nb\",c\n1,2\n"), HasSubstr("line 1: column 1: a quote that does not end in its cell"));
  EXPECT_THAT(message("a,b\r1,2\r3,4\r"), HasSubstr("line 1: a carriage return inside the line"));
  for (const std::string value : {"inf", "-inf", "1e400", "-1e999"})
    EXPECT_THAT(message("a,b\n1," + value + "\n"),
                EndsWith("column 2 (b): expected a finite number, found '" + value + "'"));
  EXPECT_THAT(message("größe,b\nμ\x80,2\n"), HasSubstr("(größe): expected a finite number, found 'μ?'; if the column "
                                                       "holds names: labels = \"größe\""));
}

// pandas writes an array under the names 0, 1, 2, …
TEST(Csv, CountedColumnsAreAHeader) {
  EXPECT_THAT(csv_from("0,1,2\n5,6,7\n0,1,2\n").values, ElementsAre(5, 6, 7, 0, 1, 2));
  EXPECT_THAT(csv_from("0,1,3\n5,6,7\n").values, ElementsAre(0, 1, 3, 5, 6, 7));
  EXPECT_THAT(csv_from("0,1\n5,6\n").values, ElementsAre(0, 1, 5, 6));  // may as well be a datum
  EXPECT_THAT(input_error([] { csv_from("0,1,2\n3,4,x\n"); }), HasSubstr("line 2: column 3 (2): expected a finite"));
}

TEST(Csv, TheFirstLineIsWhatTheUserSays) {
  const auto from = [](std::string_view text, CsvHeader header) {
    const Bytes bytes = bytes_of(text);
    ByteSource source(bytes, "table");
    return read_csv(source, {.header = header});
  };
  const std::string_view years = "2019,2020\n5,6\n", mixed = "id,2019\n5,6\n";
  EXPECT_THAT(from(years, CsvHeader::automatic).values, ElementsAre(2019, 2020, 5, 6));
  EXPECT_THAT(from(years, CsvHeader::yes).values, ElementsAre(5, 6));
  EXPECT_THAT(from(mixed, CsvHeader::yes).values, ElementsAre(5, 6));
  EXPECT_THAT(from("0,1,2\n5,6,7\n", CsvHeader::no).values, ElementsAre(0, 1, 2, 5, 6, 7));
  EXPECT_THAT(input_error([&] { from(mixed, CsvHeader::automatic); }), HasSubstr("unless header = \"yes\""));
  EXPECT_THAT(input_error([&] { from("a,b\n5,6\n", CsvHeader::no); }), HasSubstr("header = \"no\" says that line 1"));
  EXPECT_EQ(csv_header_named("yes"), CsvHeader::yes);
  EXPECT_THAT(input_error([&] { csv_header_named("maybe"); }), HasSubstr("expected one of auto, yes, no"));
}

TEST(Csv, ErrorsNameLineAndColumn) {
  const auto message = [](std::string_view text) { return input_error([&] { csv_from(text); }); };
  EXPECT_THAT(message(""), HasSubstr("table: byte 0: the file is empty"));
  EXPECT_THAT(message("a,b\n"), HasSubstr("expected rows of numbers, found none"));
  EXPECT_THAT(message("a,b\n1,2\n3,x\x1b[2J\n"),
              HasSubstr("line 3: column 2 (b): expected a finite number, found 'x?[2J'"));
  EXPECT_THAT(message("1,x\n"),
              HasSubstr("line 1: column 2: expected a finite number, found 'x'; a header line has no"));
  EXPECT_THAT(message("1,2\n3\n"), HasSubstr("line 2: expected 2 columns, as in the first line, found 1"));
  EXPECT_THAT(message("1,2\n\n3,4\n"), HasSubstr("line 2 is empty"));
  for (const char* missing : {"", "NA", "nan", "NULL", "?"})
    EXPECT_THAT(message("1,2\n3," + std::string(missing) + "\n"), HasSubstr("line 2: column 2: a missing value"))
        << missing;
  EXPECT_THAT(message("1,2\n3,inf\n"), HasSubstr("line 2: column 2: expected a finite number, found 'inf'"));
  EXPECT_THAT(message("1,2\n3,1e999\n"), HasSubstr("line 2: column 2"));
}

MatrixMarket market_from(std::string_view text) {
  const Bytes bytes = bytes_of(text);
  ByteSource source(bytes, "matrix");
  return read_matrix_market(source);
}

TEST(MatrixMarket, ReadsEntriesAndRefusesOthers) {
  const MatrixMarket matrix =
      market_from("%%MatrixMarket matrix coordinate real general\n% a comment\n\n2 3 2\n1 2 0.5\n2 3 -1\n");
  EXPECT_EQ(matrix.rows, 2);
  EXPECT_EQ(matrix.cols, 3);
  EXPECT_THAT(matrix.row, ElementsAre(0, 1));
  EXPECT_THAT(matrix.col, ElementsAre(1, 2));
  EXPECT_THAT(matrix.value, ElementsAre(0.5, -1));
  EXPECT_THAT(market_from("%%MatrixMarket matrix coordinate pattern general\n1 1 1\n1 1\n").value, ElementsAre(1));
  const auto message = [](const std::string& rest) {
    return input_error([&] { market_from("%%MatrixMarket matrix coordinate integer general\n" + rest); });
  };
  EXPECT_THAT(input_error([&] { market_from("%%MatrixMarket matrix array real general\n"); }),
              AllOf(HasSubstr("line 1: expected '%%MatrixMarket matrix coordinate'"),
                    HasSubstr("numpy.save('x.npy', scipy.io.mmread('x.mtx'))")));
  EXPECT_THAT(input_error([&] { market_from("%%MatrixMarket matrix coordinate real symmetric\n"); }),
              HasSubstr("symmetry='general'"));
  EXPECT_THAT(message("2 3\n"), HasSubstr("line 2: expected rows, columns and entries"));
  EXPECT_THAT(message("2 3 1\n3 1 1\n"), HasSubstr("line 3: expected a whole number from 1 to 2, found '3'"));
  EXPECT_THAT(message("2 3 2\n1 1 1\n"), HasSubstr("expected 2 entries, found 1"));
  EXPECT_THAT(message("2 3 1\n1 1 1\n1 2 1\n"), HasSubstr("line 4: expected 1 entries, found more"));
  EXPECT_THAT(message("2 3 1\n1 1 nan\n"), HasSubstr("line 3: row 1, column 1: expected a finite number"));
}

TEST(Zip, EveryTruncationAndEveryFlippedByteIsAnErrorOrTheSame) {
  const Bytes whole = zip_with("a.npy", bytes_of("twelve bytes"));
  const auto read = [](const Bytes& bytes) {
    std::vector<Bytes> contents;
    for (const ZipEntry& entry : zip_entries(bytes, "archive")) contents.push_back(unzipped(bytes, entry, "archive"));
    return contents;
  };
  EXPECT_THAT(read(whole), ElementsAre(bytes_of("twelve bytes")));
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_THAT(input_error([&] { read(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length))); }),
                HasSubstr("archive: "))
        << length;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    Bytes flipped = whole;
    flipped[at] ^= 0x10;
    try {
      for (const Bytes& content : read(flipped)) EXPECT_EQ(content, bytes_of("twelve bytes")) << at;
    } catch (const InputError&) {
    }
  }
}

}  // namespace
}  // namespace hone
