#include "app/run/toml.hpp"

#include <fmt/format.h>

#include <string_view>

#include "hone/base/error.hpp"

namespace hone {
namespace {

// Follows strings and comments through a text, as far as their ends need it.
class Letters {
 public:
  Letters(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  void check() {
    if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '\n') ++line_;
      if (c == '\n' && closing_.size() < 3) closing_ = {};  // the end of a comment, or of a string that does not end
      if (c == '\n' || !closing_.empty()) {
        inside(c);
      } else if (c == '#') {
        closing_ = "\n";
      } else if (c == '"' || c == '\'') {
        open(c);
      } else if (static_cast<unsigned char>(c) >= 0x80) {
        throw InputError(fmt::format(
            "{}:{}: a letter beyond ASCII outside quotes; expected a key, a number or a string", name_, line_));
      }
    }
  }

 private:
  void open(char quote) {
    const std::string_view all = quote == '"' ? "\"\"\"" : "'''";
    const bool multiline = text_.substr(at_).starts_with(all);
    closing_ = multiline ? all : all.substr(0, 1);
    at_ += closing_.size() - 1;
  }
  void inside(char c) {
    if (closing_.empty()) return;
    if (c == '\\' && closing_[0] == '"' && at_ + 1 < text_.size() && text_[at_ + 1] != '\n') {
      ++at_;
    } else if (text_.substr(at_).starts_with(closing_)) {
      at_ += closing_.size() - 1;
      closing_ = {};
    }
  }

  std::string_view text_;
  const std::string& name_;
  std::string_view closing_;  // what ends the string or comment that we are in
  std::size_t at_ = 0, line_ = 1;
};

}  // namespace

toml::table parse_toml(const std::string& text, const std::string& name) {
  Letters(text, name).check();
  return toml::parse(text, name);
}

}  // namespace hone
