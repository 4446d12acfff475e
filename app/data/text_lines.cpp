#include "app/data/text_lines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "hone/base/error.hpp"
#include "hone/base/utf8.hpp"

namespace hone {

bool TextLines::next(std::string& line) {
  constexpr std::size_t longest = 1 << 28;
  line.clear();
  for (bool some = false;; some = true) {
    if (at_ == end_) {
      at_ = 0;
      end_ = source_.read({buffer_.get(), size_});
      if (end_ == 0) {
        if (!some || line.empty()) return false;
        break;
      }
    }
    const std::uint8_t *begin = buffer_.get() + at_, *end = buffer_.get() + end_;
    const std::uint8_t* stop = std::find(begin, end, std::uint8_t{'\n'});
    line.append(begin, stop);
    at_ += static_cast<std::size_t>(stop - begin) + (stop == end ? 0 : 1);
    if (line.size() > longest) {
      ++number_;
      fail("expected lines of at most 256 MB");
    }
    if (stop != end) break;
  }
  ++number_;
  if (line.ends_with('\r')) line.pop_back();
  return true;
}

void TextLines::fail(std::string_view what) const {
  throw InputError(fmt::format("{}: line {}: {}", source_.name(), number_, what));
}

bool parse_number(std::string_view text, double& value) {
  if (text.starts_with('+')) text.remove_prefix(1);
  if (text.starts_with('+') || text.empty()) return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

std::string shown(std::string_view text, std::size_t longest) {
  std::string result;
  for (; !text.empty() && longest > 0; --longest) {
    const std::size_t length = utf8_length(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(1, length));
    const auto first = static_cast<unsigned char>(character[0]);
    const bool control = first < 0x20 || first == 0x7f || (character >= "\u0080" && character <= "\u009f");
    result += length == 0 || control ? "?" : character;
    text.remove_prefix(character.size());
  }
  return text.empty() ? result : result + "…";
}

}  // namespace hone
