#pragma once

// Reads the data of a Stan model. hone uses it before a model is compiled, and the wrapper (wrapper.cpp) when a model
// is made. So it is C++14 without any other header of ours: it travels to the user's compiler together with the
// wrapper.

#include <cctype>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace hone_data {

// One key of the data: numbers in the order of the JSON text, the last index fastest.
struct Variable {
  std::vector<double> values;
  std::vector<size_t> dims;  // empty for a number
  bool integers = true;      // also where there are no values
};

using Variables = std::map<std::string, Variable>;

// A JSON object of numbers, rectangular arrays and tuples. A tuple t is an object with the keys "1", "2", … and becomes
// the variables t.1, t.2, …; so does an array of tuples. Beyond JSON, NaN, Infinity, -Infinity, bare or as strings, are
// numbers, as in Stan's other interfaces. Errors are std::runtime_error with line and key.
class JsonReader {
 public:
  explicit JsonReader(const std::string& text) : text_(text) {}

  Variables read() {
    Variables variables;
    expect('{', "an object of data, '{'");
    if (!take('}')) {
      do {
        skip_space();
        key_.clear();
        key_ = string();
        if (variables.count(key_) || variables.count(key_ + ".1")) fail("the key stands twice");
        expect(':', "':'");
        const Variables found = value(key_);
        variables.insert(found.begin(), found.end());
      } while (take(','));
      expect('}', "',' or '}'");
    }
    skip_space();
    if (at_ != text_.size()) fail("nothing was expected after the object");
    return variables;
  }

 private:
  enum : size_t { deepest = 32 };  // arrays or tuples inside each other

  [[noreturn]] void fail(const std::string& what) const {
    size_t line = 1;
    for (size_t i = 0; i < at_ && i < text_.size(); ++i) line += text_[i] == '\n';
    std::ostringstream message;
    message << "line " << line << (key_.empty() ? "" : ", key '" + key_ + "'") << ": " << what;
    throw std::runtime_error(message.str());
  }
  static bool one_of(char letter, const char* letters) { return letter && std::strchr(letters, letter); }
  void skip_space() {
    while (at_ < text_.size() && one_of(text_[at_], " \t\r\n")) ++at_;
  }
  bool take(char letter) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != letter) return false;
    ++at_;
    return true;
  }
  void expect(char letter, const std::string& what) {
    if (!take(letter)) fail("not JSON: expected " + what);
  }
  std::string string() {
    expect('"', "a string");
    std::string result;
    while (at_ < text_.size() && text_[at_] != '"') {
      if (text_[at_] == '\\' || text_[at_] == '\n') fail("not JSON: expected a plain string");
      result += text_[at_++];
    }
    if (at_ >= text_.size()) fail("not JSON: a string does not end");
    ++at_;
    return result;
  }

  // A key's value. A tuple has several variables.
  Variables value(const std::string& name) {
    Variables found;
    if (++depth_ > deepest) fail("tuples are nested too deeply");
    if (!holds_tuple())
      numbers(found[name], 0);
    else if (peek() == '{')
      tuple(name, found);
    else
      array_of_tuples(name, found);
    --depth_;
    return found;
  }
  bool holds_tuple() const {
    const size_t first = text_.find_first_not_of("[ \t\r\n", at_);
    return first != std::string::npos && text_[first] == '{';
  }

  void tuple(const std::string& name, Variables& found) {
    expect('{', "'{'");
    size_t count = 0;
    do {
      skip_space();
      const std::string part = string(), wanted = std::to_string(++count);
      if (part != wanted) fail("expected the tuple's key \"" + wanted + "\", not \"" + part + "\"");
      expect(':', "':'");
      const Variables inner = value(name + "." + part);
      found.insert(inner.begin(), inner.end());
    } while (take(','));
    expect('}', "',' or '}'");
  }

  void array_of_tuples(const std::string& name, Variables& found) {
    expect('[', "'['");
    size_t count = 0;
    do {
      const Variables element = value(name);
      if (count++ == 0) found = element;
      if (!alike(found, element)) fail("the tuples of the array do not have the same shape");
      if (count > 1)
        for (const auto& entry : element) append(entry.second, found[entry.first]);
    } while (take(','));
    expect(']', "',' or ']'");
    for (auto& entry : found) entry.second.dims.insert(entry.second.dims.begin(), count);
  }
  static bool alike(const Variables& a, const Variables& b) {
    auto in_b = b.begin();
    for (auto in_a = a.begin(); in_a != a.end(); ++in_a, ++in_b)
      if (in_b == b.end() || in_a->first != in_b->first || in_a->second.dims != in_b->second.dims) return false;
    return in_b == b.end();
  }
  static void append(const Variable& from, Variable& to) {
    to.values.insert(to.values.end(), from.values.begin(), from.values.end());
    to.integers = to.integers && from.integers;
  }

  void numbers(Variable& variable, size_t depth) {
    if (!take('[')) {
      if (variable.dims.size() > depth) fail("a number stands where an array was expected");
      return number(variable);
    }
    if (depth >= deepest) fail("arrays are nested too deeply");
    const bool known = variable.dims.size() > depth;
    if (!known && !variable.values.empty()) fail("an array stands where a number was expected");
    if (!known) variable.dims.push_back(0);
    size_t count = 0;
    if (!take(']')) {
      do {
        // Where the first entry holds no array, no other may.
        if (count > 0 && !known && variable.dims.size() == depth + 1 && peek() == '[')
          fail("an array stands where a number was expected");
        numbers(variable, depth + 1);
        ++count;
      } while (take(','));
      expect(']', "',' or ']'");
    }
    if (known && variable.dims[depth] != count) fail("the array is not rectangular");
    variable.dims[depth] = count;
  }
  char peek() {
    skip_space();
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  void number(Variable& variable) {
    const char first = peek();
    std::string word;
    if (first == '"') {
      word = string();
    } else {
      while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || one_of(text_[at_], "+-.")))
        word += text_[at_++];
    }
    const double inf = std::numeric_limits<double>::infinity();
    static const std::map<std::string, double> special = {{"NaN", std::numeric_limits<double>::quiet_NaN()},
                                                          {"nan", std::numeric_limits<double>::quiet_NaN()},
                                                          {"Inf", inf},
                                                          {"+Inf", inf},
                                                          {"inf", inf},
                                                          {"Infinity", inf},
                                                          {"+Infinity", inf},
                                                          {"+inf", inf},
                                                          {"-Inf", -inf},
                                                          {"-inf", -inf},
                                                          {"-Infinity", -inf}};
    const auto found = special.find(word);
    if (found != special.end()) {
      variable.values.push_back(found->second);
      variable.integers = false;
      return;
    }
    if (first == '"' || word.empty() || !(word[0] == '-' || std::isdigit(static_cast<unsigned char>(word[0]))))
      fail("expected a number or an array of numbers");
    char* end = nullptr;
    const double parsed = std::strtod(word.c_str(), &end);
    if (*end) fail("not JSON: '" + word + "' is no number");
    const bool integer = word.find_first_of(".eE") == std::string::npos && parsed >= INT_MIN && parsed <= INT_MAX;
    variable.integers = variable.integers && integer;
    variable.values.push_back(parsed);
  }

  const std::string& text_;
  size_t at_ = 0, depth_ = 0;
  std::string key_;
};

// The values of an array of these dimensions with the first index fastest, as Stan asks for them.
template <class T>
std::vector<T> first_index_fastest(const Variable& variable) {
  std::vector<T> result(variable.values.size());
  std::vector<size_t> index(variable.dims.size(), 0);
  for (size_t from = 0; from < variable.values.size(); ++from) {
    size_t to = 0, stride = 1;
    for (size_t d = 0; d < index.size(); ++d) {
      to += index[d] * stride;
      stride *= variable.dims[d];
    }
    result[to] = static_cast<T>(variable.values[from]);
    for (size_t d = index.size(); d-- > 0;) {
      if (++index[d] < variable.dims[d]) break;
      index[d] = 0;
    }
  }
  return result;
}

// The variable of this name; null if there is none. The parts of an empty array of tuples are empty arrays too.
inline const Variable* find(const Variables& variables, const std::string& name) {
  const auto found = variables.find(name);
  if (found != variables.end()) return &found->second;
  const size_t dot = name.rfind('.');
  const Variable* const whole = dot == std::string::npos ? nullptr : find(variables, name.substr(0, dot));
  return whole && whole->values.empty() ? whole : nullptr;
}

}  // namespace hone_data
