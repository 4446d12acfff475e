#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "hone/base/error.hpp"

namespace hone {

// A server is not there, has no such file or sends something else: another one may do.
class ServerError : public Error {
 public:
  using Error::Error;
};

struct DownloadProgress {
  std::uint64_t received = 0;  // of the whole file, what an earlier attempt left included
  std::uint64_t total = 0;     // 0: the server does not tell
};

struct DownloadLimits {
  int connect_seconds = 20;
  int stall_seconds = 30;         // without a byte: the connection counts as dead
  int attempts = 4;               // in a row that bring no byte
  int pause_milliseconds = 1000;  // before another attempt
};

struct Download {
  std::string url;                    // https, or http where `allow_http`
  std::filesystem::path destination;  // bytes gather in destination.partial, which is kept for the next time
  std::uint64_t largest = 0;          // more bytes than this are refused
  bool allow_http = false;
  DownloadLimits limits;
  std::function<void(const DownloadProgress&)> progress;  // may be empty

  // Looks at the finished file before it is placed; throws InputError where it is not what was wanted.
  std::function<void(const std::filesystem::path&)> check;
};

// Fetches one file. What an earlier attempt left is continued (if the server can); a connection that breaks is taken up
// again. A file that fails its check is removed, and fetched anew if part of it was from an earlier time. The
// destination appears complete and checked, or not at all. Throws ServerError, and Error where writing fails.
void download(const Download& request);

}  // namespace hone
