#include "app/data/download.hpp"

#include <curl/curl.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "hone/base/file.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;

// The partial file. It is locked, so that two processes cannot write into it at once, and removed if it stays empty.
class Partial {
 public:
  explicit Partial(fs::path path) : path_(std::move(path)) {
    descriptor_ = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (descriptor_ < 0) fail("opening");
    if (flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
      close(descriptor_);
      throw Error(fmt::format("{}: another process is downloading this file", path_.string()));
    }
  }
  ~Partial() {
    struct stat status;
    if (fstat(descriptor_, &status) == 0 && status.st_size == 0) unlink(path_.c_str());
    close(descriptor_);
  }
  Partial(const Partial&) = delete;
  Partial& operator=(const Partial&) = delete;

  const fs::path& path() const { return path_; }

  std::uint64_t size() const {
    struct stat status;
    if (fstat(descriptor_, &status) != 0) fail("reading its size");
    return static_cast<std::uint64_t>(status.st_size);
  }

  void clear() {
    if (ftruncate(descriptor_, 0) != 0) fail("truncating");
  }

  void append(std::string_view bytes) {
    if (lseek(descriptor_, 0, SEEK_END) < 0) fail("seeking");
    while (!bytes.empty()) {
      const ssize_t written = write(descriptor_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail("writing");
      bytes.remove_prefix(static_cast<std::size_t>(written));
    }
  }

 private:
  [[noreturn]] void fail(std::string_view doing) const {
    throw Error(fmt::format("{}: {} failed: {}", path_.string(), doing, std::strerror(errno)));
  }

  fs::path path_;
  int descriptor_ = -1;
};

struct CurlFree {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};

// One request. libcurl is C, so an exception in a callback is kept in `thrown` until the request returns.
struct Transfer {
  const Download& request;
  Partial& partial;
  CURL* handle;
  std::uint64_t begin;     // where we asked the server to begin
  std::uint64_t received;  // of the whole file
  std::uint64_t total = 0;
  std::uint64_t range_begin = 0;  // where the server says it begins
  bool body_begun = false;
  std::exception_ptr thrown{};

  void begin_body() {
    long status = 0;
    curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
    if (status != 206) {  // the server sends the whole file: it does not support ranges
      partial.clear();
      received = 0;
    } else if (range_begin != begin) {
      throw ServerError(
          fmt::format("{}: asked for bytes from {}, the server sends from {}", request.url, begin, range_begin));
    }
    curl_off_t length = -1;
    curl_easy_getinfo(handle, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    total = length < 0 ? 0 : received + static_cast<std::uint64_t>(length);
    body_begun = true;
  }

  void take(std::string_view bytes) {
    if (!body_begun) begin_body();
    if (received + bytes.size() > request.largest) {
      partial.clear();
      throw ServerError(fmt::format("{}: the server sends more than the {} bytes that the file can have", request.url,
                                    request.largest));
    }
    partial.append(bytes);
    received += bytes.size();
    if (request.progress) request.progress({received, total});
  }

  void take_header(std::string_view line) {
    constexpr std::string_view field = "content-range: bytes ";
    if (line.starts_with("HTTP/")) range_begin = 0;  // headers of the next response, after a redirect
    if (line.size() <= field.size() || strncasecmp(line.data(), field.data(), field.size()) != 0) return;
    std::from_chars(line.data() + field.size(), line.data() + line.size(), range_begin);
  }
};

std::size_t on_body(char* bytes, std::size_t size, std::size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  try {
    transfer.take({bytes, size * count});
    return size * count;
  } catch (...) {
    transfer.thrown = std::current_exception();
    return 0;
  }
}

std::size_t on_header(char* bytes, std::size_t size, std::size_t count, void* user) {
  static_cast<Transfer*>(user)->take_header({bytes, size * count});
  return size * count;
}

enum class Outcome { done, broken, not_there, wrong_range };

struct Attempt {
  Outcome outcome = Outcome::done;
  std::string reason;
};

void configure(CURL* handle, const Download& request, Transfer& transfer, char* message) {
  const char* protocols = request.allow_http ? "http,https" : "https";
  curl_easy_setopt(handle, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, protocols);
  curl_easy_setopt(handle, CURLOPT_REDIR_PROTOCOLS_STR, protocols);
  curl_easy_setopt(handle, CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(handle, CURLOPT_MAXREDIRS, 5L);
  curl_easy_setopt(handle, CURLOPT_FAILONERROR, 1L);
  curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(handle, CURLOPT_USERAGENT, "hone");
  curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT, long{request.limits.connect_seconds});
  curl_easy_setopt(handle, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(handle, CURLOPT_LOW_SPEED_TIME, long{request.limits.stall_seconds});
  curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, on_body);
  curl_easy_setopt(handle, CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, on_header);
  curl_easy_setopt(handle, CURLOPT_HEADERDATA, &transfer);
  curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, message);
  if (const std::string bundle = environment("CURL_CA_BUNDLE"); !bundle.empty())
    curl_easy_setopt(handle, CURLOPT_CAINFO, bundle.c_str());  // curl copies it
}

Attempt attempt(const Download& request, Partial& partial) {
  static std::once_flag initialised;
  std::call_once(initialised, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
  const std::unique_ptr<CURL, CurlFree> handle(curl_easy_init());
  if (!handle) throw Error("libcurl cannot be initialised");
  std::array<char, CURL_ERROR_SIZE> message{};
  const std::uint64_t begin = partial.size();
  Transfer transfer{.request = request, .partial = partial, .handle = handle.get(), .begin = begin, .received = begin};
  configure(handle.get(), request, transfer, message.data());
  const std::string range = fmt::format("{}-", begin);
  // CURLOPT_RANGE, not RESUME_FROM: the latter fails if the server answers with the whole file.
  if (begin > 0) curl_easy_setopt(handle.get(), CURLOPT_RANGE, range.c_str());

  const CURLcode code = curl_easy_perform(handle.get());
  if (transfer.thrown) std::rethrow_exception(transfer.thrown);
  if (code == CURLE_OK) return {};
  const std::string reason = message[0] != '\0' ? message.data() : curl_easy_strerror(code);
  long status = 0;
  curl_easy_getinfo(handle.get(), CURLINFO_RESPONSE_CODE, &status);
  if (status == 416) return {Outcome::wrong_range, reason};
  const bool passing = code == CURLE_PARTIAL_FILE || code == CURLE_OPERATION_TIMEDOUT || code == CURLE_RECV_ERROR ||
                       code == CURLE_GOT_NOTHING || code == CURLE_SEND_ERROR || code == CURLE_HTTP2 ||
                       code == CURLE_HTTP2_STREAM || status >= 500;
  return {passing ? Outcome::broken : Outcome::not_there, reason};
}

[[noreturn]] void give_up(const Download& request, const Partial& partial, const std::string& reason) {
  std::string kept;
  if (const std::uint64_t bytes = partial.size(); bytes > 0)
    kept = fmt::format("; {} bytes are kept in {}, run it again to continue", bytes, partial.path().string());
  throw ServerError(fmt::format("{}: {}{}", request.url, reason, kept));
}

// Repeats until the server has sent everything. Attempts that bring bytes do not count.
void fetch_all(const Download& request, Partial& partial) {
  for (int left = request.limits.attempts; left > 0;) {
    const std::uint64_t before = partial.size();
    const Attempt result = attempt(request, partial);
    switch (result.outcome) {
      case Outcome::done:
        return;
      case Outcome::not_there:
        give_up(request, partial, result.reason);
      case Outcome::wrong_range:  // we have the whole file or none of it: the check decides
        if (before > 0) return;
        give_up(request, partial, result.reason);
      case Outcome::broken:
        break;
    }
    left = partial.size() > before ? request.limits.attempts : left - 1;
    if (left == 0) give_up(request, partial, result.reason);
    std::this_thread::sleep_for(std::chrono::milliseconds(request.limits.pause_milliseconds));
  }
}

}  // namespace

void download(const Download& request) {
  Partial partial(request.destination.string() + ".partial");
  bool resumed = partial.size() > 0;
  for (;;) {
    fetch_all(request, partial);
    try {
      request.check(partial.path());
      break;
    } catch (const InputError& error) {
      partial.clear();
      if (!std::exchange(resumed, false))
        throw ServerError(
            fmt::format("{}: the server sent an unexpected file, which was removed: {}", request.url, error.what()));
    }
  }
  place_file(partial.path(), request.destination);
}

}  // namespace hone
