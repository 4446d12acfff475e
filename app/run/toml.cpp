#include "app/run/toml.hpp"

#include <string_view>

namespace hone {
namespace {

// Follows strings and comments through a text, just enough to find their ends.
class Letters {
 public:
  explicit Letters(std::string_view text) : text_(text) {}

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
        throw toml::parse_error("a letter beyond ASCII outside quotes; expected a key, a number or a string",
                                toml::source_position{.line = line_, .column = 1});
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
  std::string_view closing_;  // what ends the string or comment that we are in
  std::size_t at_ = 0;
  toml::source_index line_ = 1;
};

}  // namespace

toml::table parse_toml(const std::string& text, const std::string& name) {
  Letters(text).check();
  return toml::parse(text, name);
}

}  // namespace hone
