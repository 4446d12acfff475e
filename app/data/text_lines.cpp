#include "app/data/text_lines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "hone/base/error.hpp"

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
  std::string result(text.substr(0, longest));
  for (char& c : result)
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e) c = '?';
  return text.size() > longest ? result + "…" : result;
}

}  // namespace hone
