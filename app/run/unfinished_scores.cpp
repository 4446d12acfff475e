#include "app/run/unfinished_scores.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "app/data/text_lines.hpp"
#include "hone/base/error.hpp"
#include "hone/base/file.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view title = "unfinished scores of hone; the same command with --resume continues";

std::string text_of(const ScoreIdentity& identity) {
  return fmt::format("{}\nsettings {}\nmodel {}\ndata {}\n", title, identity.settings, identity.model, identity.data);
}

std::string text_of(const Score& score) {
  return fmt::format("{},{},{},{},{}\n", score.datum, score.log_likelihood, score.error, score.effective_samples,
                     score.exact ? fmt::format("{}", *score.exact) : "");
}

// Takes the next line off the text; none if the line is cut off.
std::optional<std::string_view> next_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos) return {};
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end + 1);
  return line;
}

std::optional<Score> score_in(std::string_view line, int datum) {
  std::array<double, 5> numbers{};
  Score score{.datum = datum, .exact = {}};
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::size_t end = std::min(line.find(','), line.size());
    if (i == 4 && line.empty()) break;
    if (!parse_number(line.substr(0, end), numbers[i])) return {};
    line.remove_prefix(std::min(line.size(), end + 1));
    if (i == 4) score.exact = numbers[4];
  }
  if (numbers[0] != datum || !line.empty()) return {};
  score.log_likelihood = numbers[1], score.error = numbers[2], score.effective_samples = numbers[3];
  return score;
}

}  // namespace

std::vector<Score> unfinished_scores_in(const std::string& all, const ScoreIdentity& identity, int group,
                                        const std::string& origin) {
  std::string_view text = all;
  const auto expect = [&](const std::string& wanted, const std::string& what) {
    const auto line = next_line(text);
    if (!line) throw InputError(fmt::format("{}: is cut off before its first score; remove it", origin));
    if (*line != wanted) throw InputError(fmt::format("{}: {}", origin, what));
  };
  expect(std::string(title), "expected unfinished scores of hone score");
  const std::string_view after = text.substr(0, text.find('\n'));
  expect("settings " + identity.settings,
         fmt::format("its scores were made with other settings: {}; here {}",
                     shown(after.substr(std::min<std::size_t>(9, after.size())), 200), identity.settings));
  expect("model " + identity.model, "its scores belong to another model: the run has changed, or it is another one");
  expect("data " + identity.data, "its scores belong to other data: the file has changed, or it is another one");
  std::vector<Score> found;
  while (const auto line = next_line(text)) {  // a line that was cut off, and all after it, are computed again
    const auto score = score_in(*line, static_cast<int>(found.size()));
    if (!score) break;
    found.push_back(*score);
  }
  found.resize(found.size() - found.size() % static_cast<std::size_t>(group));
  return found;
}

fs::path unfinished_scores(const fs::path& out) { return out.string() + ".unfinished"; }

UnfinishedScores::UnfinishedScores(const fs::path& out, const ScoreIdentity& identity, int group, bool resume)
    : path_(unfinished_scores(out)) {
  if (out.has_parent_path() && !fs::is_directory(out.parent_path()))
    throw InputError(fmt::format("--out: {}: there is no such folder", out.string()));
  if (fs::exists(path_)) {
    if (!resume)
      throw InputError(
          fmt::format("{}: scores of a command that was stopped; continue it with --resume, or remove the "
                      "file to begin anew",
                      path_.string()));
    found_ = unfinished_scores_in(read_file(path_), identity, group, path_.string());
  }
  std::string text = text_of(identity);
  for (const Score& score : found_) text += text_of(score);
  try {
    write_file(path_, text);
  } catch (const Error& error) {
    throw InputError(fmt::format("--out: {}: cannot be written: {}", out.string(), error.what()));
  }
  empty_ = found_.empty();
  file_ = std::fopen(path_.c_str(), "ab");
  if (!file_) throw InputError(fmt::format("--out: {}: cannot be written: {}", out.string(), std::strerror(errno)));
}

UnfinishedScores::~UnfinishedScores() {
  if (!file_) return;
  std::fclose(file_);
  std::error_code ignored;
  if (empty_) fs::remove(path_, ignored);
}

void UnfinishedScores::add(std::span<const Score> scores) {
  std::string text;
  for (const Score& score : scores) text += text_of(score);
  if (std::fwrite(text.data(), 1, text.size(), file_) != text.size() || std::fflush(file_) != 0)
    throw Error(fmt::format("{}: writing failed: {}", path_.string(), std::strerror(errno)));
  empty_ = false;
}

void UnfinishedScores::remove() {
  std::fclose(std::exchange(file_, nullptr));
  fs::remove(path_);
}

}  // namespace hone
