#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "hone/base/error.hpp"

namespace hone {

// The server cannot be reached, does not have the file, or sends something else: another server may work.
class ServerError : public Error {
 public:
  using Error::Error;
};

struct DownloadProgress {
  std::uint64_t received = 0;  // of the whole file, including what an earlier attempt left
  std::uint64_t total = 0;     // 0: the server does not say
};

struct DownloadLimits {
  int connect_seconds = 20;
  int stall_seconds = 30;         // without a byte before the connection counts as dead
  int attempts = 4;               // in a row without a byte
  int pause_milliseconds = 1000;  // before another attempt
};

struct Download {
  std::string url;                    // https, or http if `allow_http`
  std::filesystem::path destination;  // bytes go to destination.partial, which is kept for the next attempt
  std::uint64_t largest = 0;          // more bytes than this are refused
  bool allow_http = false;
  DownloadLimits limits;
  std::function<void(const DownloadProgress&)> progress;  // may be empty

  // Checks the finished file before it is renamed; throws InputError if it is not the expected file.
  std::function<void(const std::filesystem::path&)> check;
};

// Downloads one file. Continues what an earlier attempt left (if the server can) and reconnects if the connection
// breaks. Removes a file that fails its check, and downloads it again if part of it came from an earlier attempt. The
// destination appears complete and checked, or not at all. Throws ServerError, and Error if writing fails.
void download(const Download& request);

}  // namespace hone
