#include "hone/target/stan_source.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "hone/base/error.hpp"
#include "hone/base/file.hpp"
#include "hone/base/format.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;

// The file that a line includes: #include name, <name> or "name"; empty if it is not such a line.
std::string included_name(std::string_view line) {
  const auto skip_blanks = [&] {
    while (!line.empty() && (line.front() == ' ' || line.front() == '\t')) line.remove_prefix(1);
  };
  skip_blanks();
  if (!line.starts_with("#include")) return {};
  line.remove_prefix(std::string_view("#include").size());
  skip_blanks();
  if (line.empty()) return {};
  const char open = line.front();
  const bool quoted = open == '"' || open == '<';
  if (quoted) line.remove_prefix(1);
  const std::size_t end = quoted ? line.find(open == '<' ? '>' : '"') : line.find_first_of(" \t\r");
  return std::string(line.substr(0, std::min(end, line.size())));
}

class Includer {
 public:
  explicit Includer(const fs::path& program) : folder_(program.parent_path()) { add(program, read_file(program)); }
  StanSource result() && { return std::move(source_); }

 private:
  void add(const fs::path& file, std::string_view text) {
    open_.push_back(file);
    bool in_comment = false;
    for (int line = 1; !text.empty(); ++line) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      const std::string_view content = text.substr(0, end);
      refuse_bytes(content, file, line);
      const std::string name = in_comment ? "" : included_name(content);
      if (name.empty()) {
        source_.text.append(content).push_back('\n');
        source_.lines.push_back({file, line});
      } else {
        include(name, file, line);
      }
      follow_comment(content, in_comment);
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    open_.pop_back();
  }

  // Translators quote what they do not understand, and a terminal would obey it.
  static void refuse_bytes(std::string_view content, const fs::path& file, int line) {
    const auto odd = std::ranges::find_if(
        content, [](unsigned char c) { return c == 0x7F || (c < 0x20 && c != '\t' && c != '\r' && c != '\f'); });
    if (odd != content.end())
      throw InputError(detail::format("{}:{}: a byte of value {}, which no text has; expected a Stan program",
                                      file.string(), line, static_cast<int>(static_cast<unsigned char>(*odd))));
  }

  void include(const std::string& name, const fs::path& from, int line) {
    std::error_code ignored;
    fs::path found = from.parent_path() / name;
    if (!fs::is_regular_file(found, ignored)) found = folder_ / name;
    if (!fs::is_regular_file(found, ignored))
      throw InputError(
          detail::format("{}:{}: the file to include, {}, is neither beside this file nor beside the program",
                         from.string(), line, name));
    const auto same = [&](const fs::path& file) { return fs::equivalent(file, found, ignored); };
    if (std::any_of(open_.begin(), open_.end(), same))
      throw InputError(detail::format("{}:{}: {} includes itself", from.string(), line, name));
    add(found, read_file(found));
  }

  static void follow_comment(std::string_view line, bool& in_comment) {
    for (std::size_t i = 0; i < line.size(); ++i) {
      const std::string_view pair = line.substr(i, 2);
      if (in_comment && pair == "*/")
        in_comment = false, ++i;
      else if (!in_comment && pair == "/*")
        in_comment = true, ++i;
      else if (!in_comment && pair == "//")
        return;
    }
  }

  fs::path folder_;
  std::vector<fs::path> open_;
  StanSource source_;
};

// A token of a program: a word, a sign, or what is between them (blanks, comments, strings).
struct Token {
  enum Kind { word, sign, blank, text } kind;
  std::string content;
};

std::vector<Token> tokens_of(std::string_view text) {
  std::vector<Token> tokens;
  std::size_t at = 0;
  const auto take = [&](Token::Kind kind, std::size_t end) {
    end = std::min(end, text.size());
    tokens.push_back({kind, std::string(text.substr(at, end - at))});
    at = end;
  };
  const auto after = [&](std::string_view mark, std::size_t from) {
    const std::size_t found = text.find(mark, from);
    return found == std::string_view::npos ? text.size() : found + mark.size();
  };
  const auto is = [&](std::size_t i, auto test) {
    return i < text.size() && test(static_cast<unsigned char>(text[i]));
  };
  const auto wordy = [](unsigned char c) { return std::isalnum(c) || c == '_'; };
  const auto spacy = [](unsigned char c) { return std::isspace(c) != 0; };
  while (at < text.size()) {
    const std::string_view pair = text.substr(at, 2);
    if (pair == "//" || text[at] == '#')
      take(Token::blank, std::min(text.find('\n', at), text.size()));
    else if (pair == "/*")
      take(Token::blank, after("*/", at + 2));
    else if (text[at] == '"')
      take(Token::text, after("\"", at + 1));
    else if (is(at, spacy)) {
      std::size_t end = at;
      while (is(end, spacy)) ++end;
      take(Token::blank, end);
    } else if (is(at, wordy)) {
      std::size_t end = at;
      while (is(end, wordy)) ++end;
      take(Token::word, end);
    } else {
      take(Token::sign, at + 1);
    }
  }
  return tokens;
}

constexpr std::array types = {"int",
                              "real",
                              "vector",
                              "row_vector",
                              "matrix",
                              "simplex",
                              "unit_vector",
                              "ordered",
                              "positive_ordered",
                              "cov_matrix",
                              "corr_matrix",
                              "cholesky_factor_cov",
                              "cholesky_factor_corr"};

bool is_type(const Token& token) {
  return token.kind == Token::word && std::find(types.begin(), types.end(), token.content) != types.end();
}

class Rewriter {
 public:
  explicit Rewriter(const std::string& text) : tokens_(tokens_of(text)) {}

  std::string run() {
    bool statement_begins = true;
    while (at_ < tokens_.size()) {
      const Token& token = tokens_[at_];
      if (token.kind == Token::blank) {
        emit();
        continue;
      }
      const bool declared = (statement_begins && declaration()) || argument();
      statement_begins = declared ? output_.back() == ';' : is_one_of(token, "{};");
      if (!declared) emit();
    }
    return std::move(output_);
  }

 private:
  using Range = std::pair<std::size_t, std::size_t>;  // of tokens, half open

  static bool is(const Token& token, std::string_view sign) {
    return token.kind == Token::sign && token.content == sign;
  }
  static bool is_one_of(const Token& token, std::string_view signs) {
    return token.kind == Token::sign && signs.find(token.content) != std::string_view::npos;
  }
  // The next token that is not blank, from i on; tokens_.size() if there is none.
  std::size_t solid(std::size_t i) const {
    while (i < tokens_.size() && tokens_[i].kind == Token::blank) ++i;
    return i;
  }
  bool sign_at(std::size_t i, std::string_view sign) const { return i < tokens_.size() && is(tokens_[i], sign); }
  bool word_at(std::size_t i) const { return i < tokens_.size() && tokens_[i].kind == Token::word; }

  // The token after the bracket that closes the one at i; tokens_.size() + 1 if it is not closed. Inside < > other
  // angles do not nest: Stan requires parentheses around comparisons there.
  std::size_t closed(std::size_t i) const {
    const bool angle = is(tokens_[i], "<");
    int depth = 0;
    for (; i < tokens_.size(); ++i) {
      if (is_one_of(tokens_[i], "([{") || (angle && depth == 0 && is(tokens_[i], "<")))
        ++depth;
      else if (is_one_of(tokens_[i], ")]}") || (angle && depth == 1 && is(tokens_[i], ">")))
        --depth;
      if (depth == 0) return i + 1;
    }
    return tokens_.size() + 1;
  }

  std::string joined(Range range) const {
    std::string text;
    for (std::size_t i = range.first; i < range.second; ++i) text += lower(tokens_[i]);
    return text;
  }
  // A word as Stan 2.21 spells it.
  static std::string lower(const Token& token) {
    std::string text = token.content;
    if (token.kind == Token::word && (text.ends_with("_lupdf") || text.ends_with("_lupmf")))
      text.erase(text.size() - 4, 1);
    return text;
  }
  void emit() { output_ += lower(tokens_[at_++]); }

  // A type with its attributes: [array[dims]] type [<bounds>] [sizes]. Returns false if there is none at i.
  struct Type {
    Range dims{0, 0};  // inside array[…], brackets included; empty if it is not an array
    Range type{0, 0};  // the rest
    std::size_t end = 0;
  };
  bool read_type(std::size_t i, Type& type) const {
    if (i >= tokens_.size()) return false;
    if (tokens_[i].kind == Token::word && tokens_[i].content == "array") {
      const std::size_t open = solid(i + 1);
      if (!sign_at(open, "[")) return false;
      const std::size_t end = closed(open);
      if (end > tokens_.size()) return false;
      type.dims = {open, end};
      i = solid(end);
    }
    if (i >= tokens_.size() || !is_type(tokens_[i])) return false;
    const std::size_t begin = i++;
    for (const char* bracket : {"<", "["}) {
      const std::size_t next = solid(i);
      if (!sign_at(next, bracket)) continue;
      i = closed(next);
      if (i > tokens_.size()) return false;
    }
    type.type = {begin, i};
    type.end = i;
    return true;
  }

  // type name [dims] [= value] {, name [dims] [= value]} ;  → one statement per name, with the array's dims after it
  bool declaration() {
    Type type;
    if (!read_type(at_, type)) return false;
    std::vector<Range> names;  // from the blank before a name to the comma or semicolon
    std::size_t i = type.end;
    for (;;) {
      const std::size_t begin = i, name = solid(i);
      if (!word_at(name)) return false;
      const std::size_t next = solid(name + 1);
      if (next >= tokens_.size() || is(tokens_[next], "(")) return false;  // a function
      for (i = name; i < tokens_.size() && !is_one_of(tokens_[i], ",;");) {
        if (is_one_of(tokens_[i], ")]}")) return false;
        i = is_one_of(tokens_[i], "([{") ? closed(i) : i + 1;
      }
      if (i >= tokens_.size()) return false;
      names.push_back({begin, i++});
      if (is(tokens_[i - 1], ";")) break;
    }
    write(type, names);
    at_ = i;
    return true;
  }

  // Line breaks keep their places. Those inside a moved or repeated piece stay where it first stood.
  void write(const Type& type, const std::vector<Range>& names) {
    const std::string kind = joined(type.type), dims = joined(type.dims);
    output_ += breaks_before(type) + kind;
    for (std::size_t n = 0; n < names.size(); ++n) {
      if (n > 0) output_ += without_comments(kind);
      const std::size_t name = solid(names[n].first);
      output_ += joined({names[n].first, name + 1}) + without_comments(dims);
      output_ += joined({name + 1, names[n].second}) + ";";
      if (n + 1 < names.size()) output_ += " ";
    }
  }
  // The line breaks of array[…], up to the type.
  std::string breaks_before(const Type& type) const {
    std::string text = joined({at_, type.type.first});
    std::erase_if(text, [](char c) { return c != '\n'; });
    return text;
  }
  // On one line: a comment to the end of a line would swallow what follows.
  static std::string without_comments(const std::string& piece) {
    std::string text;
    for (const Token& token : tokens_of(piece)) text += token.kind == Token::blank ? " " : token.content;
    return text;
  }

  // array[,] real x in a list of arguments, array[] real f(…) before a function: real[,] x
  bool argument() {
    Type type;
    if (tokens_[at_].kind != Token::word || tokens_[at_].content != "array" || !read_type(at_, type)) return false;
    const std::string dims = joined(type.dims);
    if (dims.find_first_not_of("[], \t\r\n") != std::string::npos) return false;
    output_ += breaks_before(type) + joined(type.type) + without_comments(dims);
    at_ = type.end;
    return true;
  }

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  std::string output_;
};

}  // namespace

const StanSource::Origin& StanSource::origin(int number) const {
  const int last = static_cast<int>(lines.size());
  return lines.at(static_cast<std::size_t>(std::clamp(number, 1, std::max(last, 1)) - 1));
}

StanSource read_stan(const fs::path& program) { return Includer(program).result(); }

std::string to_stan_2_21(const std::string& text) { return Rewriter(text).run(); }

}  // namespace hone
