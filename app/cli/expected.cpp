#include "app/cli/expected.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "hone/base/spelling.hpp"

namespace hone {
namespace {

std::string not_allowed(const std::string& text, const std::string& expected) {
  return fmt::format("'{}' is not allowed; expected {}", text, expected);
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i)
    text += (i == 0 ? "" : i + 1 < names.size() ? ", " : " or ") + names[i];
  return text;
}

// What stands between two parts of a text, or before or behind one; the text itself if they are not there.
std::string before(const std::string& text, const std::string& part) { return text.substr(0, text.find(part)); }
std::string behind(const std::string& text, const std::string& part) {
  const auto at = text.find(part);
  return at == text.npos ? text : text.substr(at + part.size());
}

// What an option takes, as the help says it, without its default: "i,j".
std::string taken_by(const CLI::App& app, const std::string& name) {
  const CLI::Option* option = app.get_option_no_throw(name);
  const std::string text = option ? before(option->get_option_text(), " [") : "";
  return text.empty() ? "a number" : text;
}

}  // namespace

CLI::Validator integer(std::int64_t least, std::int64_t most) {
  return CLI::Validator(
      [=](const std::string& text) {
        std::int64_t value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error == std::errc() && end == text.data() + text.size() && value >= least && value <= most)
          return std::string();
        return not_allowed(text, fmt::format("an integer from {} to {}", least, most));
      },
      "");
}

CLI::Validator one_of(std::vector<std::string> names) {
  return CLI::Validator(
      [names = std::move(names)](const std::string& text) {
        if (std::ranges::find(names, text) != names.end()) return std::string();
        return not_allowed(text, listed(names)) + did_you_mean(text, names);
      },
      "");
}

std::string complaint(const CLI::App& app, const CLI::ParseError& error) {
  const std::string text = error.what(), kind = error.get_name();
  const auto has = [&](const char* part) { return text.find(part) != text.npos; };
  if (kind == "RequiredError" && text.ends_with(" is required"))
    return "missing argument: " + before(text, " is required");
  if (kind == "ArgumentMismatch" && text.ends_with(" missing"))  // "--steps: 1 required N missing"
    return before(text, ":") + " needs a value";
  if (kind == "ArgumentMismatch" && has(": At Most 1 "))
    return fmt::format("{} is given {} times; expected once", before(text, ":"), behind(text, "received "));
  if (kind == "ExcludesError" && has(" excludes "))
    return fmt::format("{} and {} exclude each other; leave one of the two out", before(text, " excludes "),
                       behind(text, " excludes "));
  if (kind == "RequiresError" && has(" requires "))
    return fmt::format("{} needs {}", before(text, " requires "), behind(text, " requires "));
  if (kind == "ConversionError" && has("Could not convert: ")) {  // "Could not convert: --between = a,b"
    const std::string name = before(behind(text, ": "), " = ");
    return fmt::format("{}: {}", name, not_allowed(behind(text, " = "), taken_by(app, name)));
  }
  return text;
}

}  // namespace hone
