#include "app/data/matrix_market.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "app/data/text_lines.hpp"

namespace hone {
namespace {

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::size_t at = 0;;) {
    at = line.find_first_not_of(" \t", at);
    if (at == std::string_view::npos) return words;
    const std::size_t end = std::min(line.find_first_of(" \t", at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
}

class Reader {
 public:
  explicit Reader(ByteSource& source) : lines_(source) {}

  MatrixMarket read() {
    const bool pattern = banner();
    if (!next()) lines_.fail("expected a line with rows, columns and entries, found the end of the file");
    if (words_.size() != 3) lines_.fail("expected rows, columns and entries");
    matrix_.rows = size(0, std::numeric_limits<int>::max());
    matrix_.cols = size(1, std::numeric_limits<int>::max());
    const auto entries = size(2, std::numeric_limits<int>::max());
    while (next()) add(entries, pattern);
    if (matrix_.value.size() != static_cast<std::size_t>(entries))
      lines_.fail(fmt::format("expected {} entries, found {}", entries, matrix_.value.size()));
    return std::move(matrix_);
  }

 private:
  bool banner() {
    constexpr auto wanted = "expected '%%MatrixMarket matrix coordinate', then real, integer or pattern, then general";
    if (!lines_.next(line_)) lines_.fail(wanted);
    for (char& c : line_)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    const auto words = words_of(line_);
    if (words.size() != 5 || words[0] != "%%matrixmarket" || words[1] != "matrix" || words[2] != "coordinate" ||
        words[4] != "general" || (words[3] != "real" && words[3] != "integer" && words[3] != "pattern"))
      lines_.fail(fmt::format("{}; found '{}'{}", wanted, shown(line_, 60), recipe(words)));
    return words[3] == "pattern";
  }

  // How SciPy turns a file of another kind into one that hone reads.
  static std::string recipe(const std::vector<std::string_view>& words) {
    if (words.size() != 5 || words[0] != "%%matrixmarket") return "";
    if (words[2] == "array") return "; numpy.save('x.npy', scipy.io.mmread('x.mtx')) makes a .npy file of a dense one";
    if (words[4] == "symmetric" || words[4] == "skew-symmetric")
      return "; scipy.io.mmwrite('y.mtx', scipy.io.mmread('x.mtx'), symmetry='general') writes all entries";
    return "";
  }

  // The next line that is neither empty nor a comment.
  bool next() {
    while (lines_.next(line_)) {
      words_ = words_of(line_);
      if (!words_.empty() && words_[0][0] != '%') return true;
    }
    return false;
  }

  int size(std::size_t word, int most) const {
    double value = 0;
    if (!parse_number(words_[word], value) || !(value >= 1 && value <= most) || value != std::floor(value))
      lines_.fail(fmt::format("expected a whole number from 1 to {}, found '{}'", most, shown(words_[word])));
    return static_cast<int>(value);
  }

  void add(int entries, bool pattern) {
    if (words_.size() != (pattern ? 2u : 3u))
      lines_.fail(pattern ? "expected a row and a column" : "expected a row, a column and a value");
    if (matrix_.value.size() == static_cast<std::size_t>(entries))
      lines_.fail(fmt::format("expected {} entries, found more", entries));
    double value = 1;
    matrix_.row.push_back(size(0, matrix_.rows) - 1);
    matrix_.col.push_back(size(1, matrix_.cols) - 1);
    if (!pattern && (!parse_number(words_[2], value) || !std::isfinite(value)))
      lines_.fail(fmt::format("row {}, column {}: expected a finite number, found '{}'", shown(words_[0]),
                              shown(words_[1]), shown(words_[2])));
    matrix_.value.push_back(value);
  }

  TextLines lines_;
  std::string line_;
  std::vector<std::string_view> words_;
  MatrixMarket matrix_;
};

}  // namespace

MatrixMarket read_matrix_market(ByteSource& source) { return Reader(source).read(); }

}  // namespace hone
