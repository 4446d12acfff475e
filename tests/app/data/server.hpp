#pragma once

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <limits>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/app/data/files.hpp"

namespace hone::test {

struct Request {
  std::string path;
  std::size_t begin = 0;  // of the requested range
  bool ranged = false;
  int number = 0;  // of the request, counted from 0
};

// How the server answers a request; by default it serves the content correctly.
struct Answer {
  Bytes content = {};
  int status = 200;
  bool knows_ranges = true;
  std::size_t cut_after = std::numeric_limits<std::size_t>::max();  // bytes of the body, then the connection breaks
  bool stalls = false;                                              // goes silent instead of breaking
  std::size_t piece = 1 << 16;                                      // bytes written at a time,
  int pause_milliseconds = 0;                                       // with this pause after each
  bool tells_length = true;
  std::size_t shift = 0;      // a range begins this many bytes later than requested
  std::string location = {};  // of a redirect
};

// A web server with one thread that can misbehave on demand.
class Server {
 public:
  explicit Server(std::function<Answer(const Request&)> answer) : answer_(std::move(answer)) {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    if (bind(listener_, reinterpret_cast<sockaddr*>(&address), length) != 0 || listen(listener_, 8) != 0)
      throw Error("no port for the test server");
    getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~Server() {
    stopping_ = true;
    thread_.join();
    close(listener_);
  }

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  std::vector<Request> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  void serve() {
    while (!stopping_) {
      pollfd waiting{listener_, POLLIN, 0};
      if (poll(&waiting, 1, 20) <= 0) continue;
      const int connection = accept(listener_, nullptr, nullptr);
      if (connection < 0) continue;
      respond(connection);
      close(connection);
    }
  }

  Request receive(int connection) {
    std::string text;
    std::vector<char> buffer(4096);
    while (text.find("\r\n\r\n") == std::string::npos) {
      const ssize_t got = recv(connection, buffer.data(), buffer.size(), 0);
      if (got <= 0) break;
      text.append(buffer.data(), static_cast<std::size_t>(got));
    }
    Request request;
    request.path = text.substr(4, text.find(' ', 4) - 4);
    if (const std::size_t at = text.find("Range: bytes="); at != std::string::npos) {
      request.ranged = true;
      request.begin = std::stoul(text.substr(at + 13));
    }
    const std::lock_guard lock(mutex_);
    request.number = static_cast<int>(requests_.size());
    requests_.push_back(request);
    return request;
  }

  void respond(int connection) {
    const Request request = receive(connection);
    const Answer answer = answer_(request);
    const std::size_t size = answer.content.size();
    const bool ranged = request.ranged && answer.knows_ranges && answer.status == 200;
    const int status = ranged ? (request.begin < size ? 206 : 416) : answer.status;
    const std::size_t begin = status == 206 ? request.begin + answer.shift : 0;
    std::string head = "HTTP/1.1 " + std::to_string(status) + " Answer\r\nConnection: close\r\n";
    if (answer.tells_length) head += "Content-Length: " + std::to_string(size - begin) + "\r\n";
    if (!answer.location.empty()) head += "Location: " + answer.location + "\r\n";
    if (status == 206)
      head += "Content-Range: bytes " + std::to_string(begin) + "-" + std::to_string(size - 1) + "/" +
              std::to_string(size) + "\r\n";
    head += "\r\n";
    if (!send_all(connection, bytes_of(head))) return;
    const std::size_t end = std::min(size, answer.cut_after > size - begin ? size : begin + answer.cut_after);
    for (std::size_t at = begin; at < end; at += answer.piece) {
      const auto from = answer.content.begin() + static_cast<std::ptrdiff_t>(at);
      const auto to = from + static_cast<std::ptrdiff_t>(std::min(answer.piece, end - at));
      if (!send_all(connection, Bytes(from, to))) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(answer.pause_milliseconds));
    }
    pollfd gone{connection, POLLIN, 0};
    while (answer.stalls && !stopping_ && poll(&gone, 1, 20) == 0) continue;
  }

  static bool send_all(int connection, const Bytes& bytes) {
    std::size_t done = 0;
    while (done < bytes.size()) {
      const ssize_t sent = send(connection, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
      if (sent <= 0) return false;
      done += static_cast<std::size_t>(sent);
    }
    return true;
  }

  std::function<Answer(const Request&)> answer_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> stopping_ = false;
  mutable std::mutex mutex_;
  std::vector<Request> requests_;
  std::thread thread_;
};

}  // namespace hone::test
