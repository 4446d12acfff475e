#include "hone/target/stan_data.hpp"

#include <cctype>
#include <charconv>
#include <string_view>
#include <vector>

#include "hone/base/error.hpp"
#include "hone/base/file.hpp"
#include "hone/base/format.hpp"

namespace hone {
namespace {

using hone_data::Variable;
using hone_data::Variables;

enum class Side { lower, upper };

// What a bound's check is called in generated code.
std::string check_of(Side side) {
  return detail::format("stan::math::check_{}_or_equal(function__, \"", side == Side::lower ? "greater" : "less");
}

// A variable that the program declares as data.
struct Declared {
  struct Bound {
    Side side;
    std::string value;  // a C++ expression
  };
  std::string name, type;          // "int", or "double"
  std::vector<std::string> sizes;  // C++ expressions
  std::vector<Bound> bounds = {};
};

// Reads forward through generated code.
class Cursor {
 public:
  Cursor(std::string_view code, std::size_t at) : code_(code), at_(at) {}
  bool take(std::string_view mark) {
    skip();
    if (!code_.substr(at_).starts_with(mark)) return false;
    at_ += mark.size();
    return true;
  }
  // Everything up to the parenthesis that closes one opened before, which is passed over.
  std::string inside() {
    const std::size_t begin = at_;
    for (int depth = 1; at_ < code_.size(); ++at_) {
      if (code_[at_] == '(') ++depth;
      if (code_[at_] == ')' && --depth == 0) return std::string(code_.substr(begin, at_++ - begin));
    }
    return {};
  }
  // Everything up to a mark, which is passed over.
  std::string until(std::string_view mark) {
    skip();
    const std::size_t end = code_.find(mark, at_);
    if (end == std::string_view::npos) return {};
    const std::string text(code_.substr(at_, end - at_));
    at_ = end + mark.size();
    return text;
  }

 private:
  void skip() {
    while (at_ < code_.size() && std::isspace(static_cast<unsigned char>(code_[at_]))) ++at_;
  }
  std::string_view code_;
  std::size_t at_;
};

// stanc writes for each variable: context__.validate_dims("data initialization", "x", "double",
//   std::vector<size_t>{static_cast<size_t>(N), static_cast<size_t>(2)});
std::vector<Declared> declared_in(const std::string& code) {
  constexpr std::string_view call = "context__.validate_dims(";
  std::vector<Declared> all;
  for (std::size_t at = 0; (at = code.find(call, at)) != std::string::npos;) {
    at += call.size();
    Cursor cursor(code, at);
    if (!cursor.take("\"data initialization\"") || !cursor.take(",") || !cursor.take("\"")) continue;
    Declared one;
    one.name = cursor.until("\"");
    if (!cursor.take(",") || !cursor.take("\"")) continue;
    one.type = cursor.until("\"");
    if (!cursor.take(",") || !cursor.take("std::vector<size_t>{")) continue;
    while (cursor.take("static_cast<size_t>(")) {
      one.sizes.push_back(cursor.inside());
      if (!cursor.take(",")) break;
    }
    if (cursor.take("}")) all.push_back(one);
  }
  return all;
}

// stanc writes for each bound: stan::math::check_greater_or_equal(function__, "x", x, -(1.5));
std::vector<Declared> bounded_in(const std::string& code) {
  std::vector<Declared> all = declared_in(code);
  for (const Side side : {Side::lower, Side::upper}) {
    const std::string call = check_of(side);
    for (std::size_t at = 0; (at = code.find(call, at)) != std::string::npos;) {
      at += call.size();
      Cursor cursor(code, at);
      const std::string name = cursor.until("\""), rest = cursor.inside();
      int depth = 0;
      std::size_t comma = 0;  // the last one outside of parentheses
      for (std::size_t i = 0; i < rest.size(); ++i) {
        depth += rest[i] == '(' ? 1 : rest[i] == ')' ? -1 : 0;
        if (depth == 0 && rest[i] == ',') comma = i;
      }
      const std::size_t begin = rest.find_first_not_of(" \t\n", comma + 1);
      for (Declared& one : all)
        if (one.name == name && begin != std::string::npos) one.bounds.push_back({side, rest.substr(begin)});
    }
  }
  return all;
}

// Whether a bound is the name of a variable, perhaps with a minus sign.
bool names_data(std::string_view bound) {
  const std::size_t first = bound.find_first_not_of("-(");
  return first != std::string_view::npos && std::isalpha(static_cast<unsigned char>(bound[first]));
}

// A bound that is a number or a single number of the data, perhaps with a minus sign: "0", "-(1.5)", "N"; nothing
// otherwise.
std::optional<double> bound_of(std::string_view expression, const Variables& data) {
  if (expression.starts_with("-(") && expression.ends_with(")")) {
    const auto opposite = bound_of(expression.substr(2, expression.size() - 3), data);
    return opposite ? std::optional(-*opposite) : std::nullopt;
  }
  double number = 0;
  const char* const end = expression.data() + expression.size();
  const bool is_name = names_data(expression);  // `inf` too
  if (const auto [read, error] = std::from_chars(expression.data(), end, number);
      !is_name && error == std::errc() && read == end)
    return number;
  const Variable* const known = hone_data::find(data, std::string(expression));
  return known && known->dims.empty() && known->values.size() == 1 ? std::optional(known->values[0]) : std::nullopt;
}

// A size that is a number or a whole number of the data; nothing otherwise.
std::optional<std::size_t> size_of(const std::string& expression, const Variables& data) {
  if (!expression.empty() && expression.find_first_not_of("0123456789") == std::string::npos && expression.size() < 10)
    return std::stoul(expression);
  const Variable* const known = hone_data::find(data, expression);
  if (!known || !known->integers || !known->dims.empty() || known->values.at(0) < 0) return std::nullopt;
  return static_cast<std::size_t>(known->values[0]);
}

std::string shape(const std::vector<std::string>& sizes) {
  std::string text;
  for (const std::string& size : sizes) text += (text.empty() ? "" : ", ") + size;
  return "(" + text + ")";
}

std::string shape(const std::vector<std::size_t>& sizes) {
  std::vector<std::string> texts;
  for (const std::size_t size : sizes) texts.push_back(std::to_string(size));
  return shape(texts);
}

void check(const Declared& declared, const Variables& data, const std::filesystem::path& file) {
  const auto refuse = [&](const std::string& what) {
    throw InputError(detail::format("{}: variable '{}' of the data block {}", file.string(), declared.name, what));
  };
  const Variable* const found = hone_data::find(data, declared.name);
  bool may_be_empty = false, same = found && found->dims.size() == declared.sizes.size();
  for (std::size_t i = 0; i < declared.sizes.size(); ++i) {
    const auto size = size_of(declared.sizes[i], data);
    may_be_empty = may_be_empty || !size || *size == 0;
    same = same && (!size || *size == found->dims[i]);
  }
  if (!found) refuse("is not in the data");
  if (declared.type == "int" && !found->integers) refuse("is declared as int, but the data hold other numbers");
  if (same || (may_be_empty && found->values.empty())) return;
  const auto words = [](const auto& dims) {
    return dims.empty() ? "a single number" : "an array of size " + shape(dims);
  };
  refuse(detail::format("is declared as {}, but the data hold {}", words(declared.sizes), words(found->dims)));
}

// Where a value is, from 1: " at [2, 1]"; nothing for a single number.
std::string place_of(std::size_t index, const std::vector<std::size_t>& dims) {
  std::string text;
  for (std::size_t i = dims.size(); i-- > 0; index /= dims[i])
    text = std::to_string(index % dims[i] + 1) + (text.empty() ? "" : ", ") + text;
  return text.empty() ? "" : " at [" + text + "]";
}

// As Stan does, a NaN is within no bounds.
void check_bounds(const Declared& declared, const Variables& data, const std::filesystem::path& file) {
  const Variable* const found = hone_data::find(data, declared.name);
  for (const auto& [side, expression] : declared.bounds) {
    const auto bound = bound_of(expression, data);
    if (!bound || !found) continue;
    for (std::size_t i = 0; i < found->values.size(); ++i) {
      const double value = found->values[i];
      if (side == Side::lower ? value >= *bound : value <= *bound) continue;
      const std::string number = detail::format("{}", *bound);
      throw InputError(
          detail::format("{}: variable '{}' of the data block is {}{}; expected at {} {}", file.string(), declared.name,
                         value, place_of(i, found->dims), side == Side::lower ? "least" : "most",
                         names_data(expression) ? detail::format("{}, which is {}", expression, number) : number));
    }
  }
}

}  // namespace

std::optional<Variables> read_stan_data(const std::filesystem::path& data) {
  if (data.empty()) return std::nullopt;
  return stan_data_in(read_file(data), data.string());
}

Variables stan_data_in(const std::string& text, const std::string& name) {
  if (text.find_first_not_of(" \t\r\n") == std::string::npos)
    throw InputError(detail::format("{}: is empty; expected a JSON object with the model's data", name));
  try {
    return hone_data::JsonReader(text).read();
  } catch (const std::runtime_error& problem) {
    throw InputError(detail::format("{}: {}", name, problem.what()));
  }
}

std::string declarations_in(const std::string& code) {
  std::string text;
  for (const Declared& declared : bounded_in(code)) {
    text += "context__.validate_dims(\"data initialization\", \"" + declared.name + "\", \"" + declared.type +
            "\", std::vector<size_t>{";
    for (std::size_t i = 0; i < declared.sizes.size(); ++i)
      text += (i > 0 ? ", " : "") + ("static_cast<size_t>(" + declared.sizes[i] + ")");
    text += "});\n";
    for (const Declared::Bound& bound : declared.bounds)
      text += check_of(bound.side) + declared.name + "\", " + declared.name + ", " + bound.value + ");\n";
  }
  return text;
}

void check_stan_data(const std::string& code, const Variables& data, const std::filesystem::path& file) {
  for (const Declared& declared : bounded_in(code)) {
    check(declared, data, file);
    check_bounds(declared, data, file);
  }
}

void check_needs_no_data(const std::string& code, const std::filesystem::path& program) {
  std::string names;
  for (const Declared& declared : declared_in(code)) names += (names.empty() ? "" : ", ") + declared.name;
  if (!names.empty())
    throw InputError(detail::format(
        "{}: the model was given no data (--data FILE.json), but its data block declares {}", program.string(), names));
}

}  // namespace hone
