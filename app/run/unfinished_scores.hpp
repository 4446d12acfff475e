#pragma once

#include <cstdio>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "app/run/use.hpp"

namespace hone {

// FILE.unfinished, which keeps the scores until all are there.
std::filesystem::path unfinished_scores(const std::filesystem::path& out);

// What scores depend on, each in words or as a checksum.
struct ScoreIdentity {
  std::string settings, model, data;
};

// The scores in the text of such a file, which begins by what they depend on: whole groups of `group` data, up to the
// first line that is cut off or wrong. Throws InputError that begins with `origin` if they depend on something else.
std::vector<Score> unfinished_scores_in(const std::string& all, const ScoreIdentity& identity, int group,
                                        const std::string& origin);

// The scores so far of `hone score --out FILE`, on disk after every addition, so that a command that was stopped or
// killed can be continued. A text: what the scores depend on, then one line per datum.
class UnfinishedScores {
 public:
  // With `resume`, takes the scores that are there, in whole groups of `group` data. Throws InputError if they depend
  // on something else, and without `resume` if there are any.
  UnfinishedScores(const std::filesystem::path& out, const ScoreIdentity& identity, int group, bool resume);
  ~UnfinishedScores();  // removes the file if it has no scores
  UnfinishedScores(const UnfinishedScores&) = delete;
  UnfinishedScores& operator=(const UnfinishedScores&) = delete;

  const std::vector<Score>& found() const { return found_; }
  void add(std::span<const Score> scores);  // throws Error, for instance if the disk is full
  void remove();                            // once they are complete and in their file

 private:
  std::filesystem::path path_;
  std::FILE* file_ = nullptr;
  std::vector<Score> found_;
  bool empty_ = true;
};

}  // namespace hone
