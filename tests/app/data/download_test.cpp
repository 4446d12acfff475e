#include "app/data/download.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdlib>

#include "app/data/check.hpp"
#include "app/data/fetch.hpp"
#include "tests/app/data/server.hpp"

namespace hone {
namespace {

using namespace hone::test;
using ::testing::AllOf;
using ::testing::HasSubstr;

Bytes noise(std::size_t size) {
  Bytes bytes(size);
  std::uint32_t state = 1;
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>((state = state * 1664525u + 1013904223u) >> 24);
  return bytes;
}

template <class Call>
std::string error(Call&& call) {
  try {
    call();
  } catch (const Error& caught) {
    return caught.what();
  }
  return "";
}

class Downloading : public Folder {
 protected:
  Download request(const Server& server) {
    Download one;
    one.url = server.url() + "/file";
    one.destination = folder_ / "file";
    one.largest = 1 << 20;
    one.allow_http = true;
    one.limits = {.connect_seconds = 5, .stall_seconds = 1, .attempts = 2, .pause_milliseconds = 1};
    one.check = [this](const std::filesystem::path& path) {
      if (read_bytes(path) != content_) throw InputError(path.string() + ": wrong checksum");
    };
    return one;
  }

  void expect_placed() const {
    EXPECT_EQ(read_bytes(folder_ / "file"), content_);
    EXPECT_FALSE(std::filesystem::exists(partial()));
  }
  void expect_nothing_placed() const { EXPECT_FALSE(std::filesystem::exists(folder_ / "file")); }
  std::filesystem::path partial() const { return folder_ / "file.partial"; }

  const Bytes content_ = noise(300'000);
};

TEST_F(Downloading, PlacesTheFileAndTellsProgress) {
  Server server([&](const Request&) { return Answer{.content = content_}; });
  Download one = request(server);
  std::vector<DownloadProgress> seen;
  one.progress = [&](const DownloadProgress& at) { seen.push_back(at); };
  download(one);
  expect_placed();
  ASSERT_FALSE(seen.empty());
  EXPECT_EQ(seen.back().received, content_.size());
  EXPECT_EQ(seen.back().total, content_.size());
  for (std::size_t i = 1; i < seen.size(); ++i) EXPECT_GE(seen[i].received, seen[i - 1].received);
}

TEST_F(Downloading, ASlowServerIsWaitedFor) {
  Server server([&](const Request&) {
    return Answer{.content = content_, .piece = 20'000, .pause_milliseconds = 120};  // in total longer than a stall
  });
  download(request(server));
  expect_placed();
  EXPECT_EQ(server.requests().size(), 1u);
}

TEST_F(Downloading, ACutIsResumedWhereItBroke) {
  Server server([&](const Request&) { return Answer{.content = content_, .cut_after = 70'000}; });
  download(request(server));
  expect_placed();
  const auto requests = server.requests();
  ASSERT_EQ(requests.size(), 5u);
  EXPECT_FALSE(requests[0].ranged);
  EXPECT_EQ(requests[1].begin, 70'000u);
  EXPECT_EQ(requests[4].begin, 280'000u);
}

TEST_F(Downloading, ASilentServerIsLeftAndResumed) {
  Server server([&](const Request& asked) {
    if (asked.number > 0) return Answer{.content = content_};
    return Answer{.content = content_, .cut_after = 100'000, .stalls = true};
  });
  download(request(server));
  expect_placed();
  EXPECT_EQ(server.requests().size(), 2u);
}

TEST_F(Downloading, WhatAnEarlierTimeLeftIsContinued) {
  Server broken([&](const Request& asked) {
    return Answer{.content = content_, .cut_after = asked.number == 0 ? 120'000u : 0u};
  });
  EXPECT_THAT(error([&] { download(request(broken)); }), HasSubstr("120000 bytes are kept in " + partial().string()));
  expect_nothing_placed();
  Server good([&](const Request&) { return Answer{.content = content_}; });
  download(request(good));
  expect_placed();
  EXPECT_EQ(good.requests().at(0).begin, 120'000u);
}

TEST_F(Downloading, WithoutRangesItBeginsAnew) {
  Server server([&](const Request& asked) {
    return Answer{.content = content_, .knows_ranges = false, .cut_after = asked.number == 0 ? 120'000u : 1u << 30};
  });
  download(request(server));
  expect_placed();
  EXPECT_EQ(server.requests().size(), 2u);
}

TEST_F(Downloading, WithoutALengthTheCheckDecides) {
  Server server([&](const Request&) { return Answer{.content = content_, .tells_length = false}; });
  download(request(server));
  expect_placed();
}

TEST_F(Downloading, AWrongChecksumPlacesNothingAndKeepsNothing) {
  Server server([&](const Request&) { return Answer{.content = noise(1000)}; });
  EXPECT_THAT(error([&] { download(request(server)); }), AllOf(HasSubstr("/file"), HasSubstr("wrong checksum")));
  expect_nothing_placed();
  EXPECT_FALSE(std::filesystem::exists(partial()));
}

TEST_F(Downloading, ALeftoverOfAnotherFileIsFetchedAnew) {
  Server server([&](const Request&) { return Answer{.content = content_}; });
  for (const std::size_t length : {1000u, 300'000u, 400'000u}) {  // shorter, as long, longer than the file
    write("file.partial", Bytes(length, 7));
    download(request(server));
    expect_placed();
    std::filesystem::remove(folder_ / "file");
  }
}

TEST_F(Downloading, ACompleteLeftoverIsPlaced) {
  Server server([&](const Request&) { return Answer{.content = content_}; });
  write("file.partial", content_);
  download(request(server));
  expect_placed();
}

TEST_F(Downloading, NotFound) {
  Server server([&](const Request&) { return Answer{.content = bytes_of("<html>"), .status = 404}; });
  EXPECT_THAT(error([&] { download(request(server)); }), AllOf(HasSubstr("/file: "), HasSubstr("404")));
  expect_nothing_placed();
  EXPECT_FALSE(std::filesystem::exists(partial()));
  EXPECT_EQ(server.requests().size(), 1u);
}

TEST_F(Downloading, ABusyServerIsTriedAgain) {
  Server server(
      [&](const Request& asked) { return Answer{.content = content_, .status = asked.number == 0 ? 503 : 200}; });
  download(request(server));
  expect_placed();
}

TEST_F(Downloading, ARangeThatBeginsElsewhereIsAnError) {
  Server server([&](const Request& asked) {
    return Answer{.content = content_, .cut_after = asked.number == 0 ? 1000u : 1u << 30, .shift = 5};
  });
  EXPECT_THAT(error([&] { download(request(server)); }),
              HasSubstr("asked for bytes from 1000, the server sends from 1005"));
  expect_nothing_placed();
}

TEST_F(Downloading, MoreThanTheFileCanHaveIsRefused) {
  Server server([&](const Request&) { return Answer{.content = content_}; });
  Download one = request(server);
  one.largest = 100'000;
  EXPECT_THAT(error([&] { download(one); }), HasSubstr("more than the 100000 bytes"));
  expect_nothing_placed();
  EXPECT_FALSE(std::filesystem::exists(partial()));
}

TEST_F(Downloading, RedirectionsAreFollowed) {
  Server server([&](const Request& asked) {
    if (asked.path == "/file") return Answer{.content = bytes_of("moved"), .status = 302, .location = "/other"};
    return Answer{.content = content_};
  });
  download(request(server));
  expect_placed();
}

TEST_F(Downloading, HttpIsRefusedUnlessAllowed) {
  Server server([&](const Request&) { return Answer{.content = content_}; });
  Download one = request(server);
  one.allow_http = false;
  EXPECT_THAT(error([&] { download(one); }), HasSubstr("Protocol"));
  EXPECT_TRUE(server.requests().empty());
}

TEST_F(Downloading, NoServer) {
  Download one;
  {
    const Server server([&](const Request&) { return Answer{}; });
    one = request(server);
  }
  EXPECT_THAT(error([&] { download(one); }), HasSubstr("connect"));
}

TEST_F(Downloading, TwoProcessesDoNotShareAFile) {
  Server server([&](const Request&) { return Answer{.content = content_}; });
  const int other = open(partial().c_str(), O_RDWR | O_CREAT, 0644);
  ASSERT_EQ(flock(other, LOCK_EX), 0);
  EXPECT_THAT(error([&] { download(request(server)); }), HasSubstr("another process"));
  close(other);
}

// A TLS server with a self-signed certificate.
class TlsServer {
 public:
  explicit TlsServer(const std::filesystem::path& folder) {
    {
      const Server free([](const Request&) { return Answer{}; });
      port_ = free.url().substr(free.url().rfind(':') + 1);
    }
    process_ = fork();
    if (process_ != 0) return;
    if (chdir(folder.c_str()) != 0) _exit(1);
    freopen("/dev/null", "w", stdout);
    freopen("/dev/null", "w", stderr);
    execlp("openssl", "openssl", "s_server", "-accept", port_.c_str(), "-cert", "cert.pem", "-key", "key.pem", "-WWW",
           nullptr);
    _exit(1);
  }
  ~TlsServer() {
    kill(process_, SIGTERM);
    waitpid(process_, nullptr, 0);
  }
  std::string url() const { return "https://localhost:" + port_; }

 private:
  std::string port_;
  pid_t process_ = -1;
};

TEST_F(Downloading, CertificatesAreVerified) {
  write("served", content_);
  const std::string make = "cd '" + folder_.string() +
                           "' && openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost "
                           "-addext subjectAltName=DNS:localhost -keyout key.pem -out cert.pem 2>/dev/null";
  if (std::system(make.c_str()) != 0) GTEST_SKIP() << "the program openssl is missing";
  const TlsServer server(folder_);
  Download one;
  one.url = server.url() + "/served";
  one.destination = folder_ / "file";
  one.largest = 1 << 20;
  one.limits = {.connect_seconds = 5, .stall_seconds = 5, .attempts = 1, .pause_milliseconds = 1};
  one.check = [&](const std::filesystem::path& path) {
    if (read_bytes(path) != content_) throw InputError("wrong checksum");
  };
  std::string message;
  for (int i = 0; i < 100; ++i) {  // until the server is listening
    message = error([&] { download(one); });
    if (message.find("connect") == std::string::npos) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_THAT(message, HasSubstr("certificate"));
  expect_nothing_placed();
  setenv("CURL_CA_BUNDLE", (folder_ / "cert.pem").c_str(), 1);
  EXPECT_EQ(error([&] { download(one); }), "");
  unsetenv("CURL_CA_BUNDLE");
  expect_placed();
}

class Fetching : public Folder {
 protected:
  Fetching() {
    for (const auto& [name, items] : {std::pair{"train", 5}, {"test", 2}}) {
      const Bytes content = idx_images(static_cast<std::uint32_t>(items), 3, 2);
      const auto plain = write(name, content);
      info_.files.push_back({.name = name,
                             .published = std::string(name) + ".gz",
                             .format = FileFormat::idx,
                             .items = items,
                             .sha256 = content_sha256(plain)});
    }
  }

  Answer serve(const Request& asked) const {
    if (asked.path == "/tiny/train.gz") return {.content = gzip(idx_images(5, 3, 2))};
    if (asked.path == "/tiny/test.gz") return {.content = gzip(idx_images(2, 3, 2))};
    return {.content = bytes_of("none"), .status = 404};
  }

  FetchRequest request(const std::string& url) const {
    FetchRequest one;
    one.folder = folder_ / "data";
    one.url = url;
    one.limits = {.connect_seconds = 5, .stall_seconds = 1, .attempts = 2, .pause_milliseconds = 1};
    return one;
  }

  DataSetInfo info_{"tiny", "", {3, 2}, 4, 1, 2, {}, {}, ""};
};

TEST_F(Fetching, GetsWhatIsMissingOrBroken) {
  Server server([&](const Request& asked) { return serve(asked); });
  EXPECT_EQ(fetch_data(info_, request(server.url())), folder_ / "data/tiny");
  EXPECT_EQ(server.requests().size(), 2u);
  fetch_data(info_, request(server.url() + "/"));
  EXPECT_EQ(server.requests().size(), 2u);
  write("data/tiny/test.gz", bytes_of("broken"));
  std::vector<FileEvent> events;
  FetchRequest again = request(server.url());
  again.event = [&](const DataFile&, FileEvent event) { events.push_back(event); };
  fetch_data(info_, again);
  EXPECT_THAT(events, ::testing::ElementsAre(FileEvent::present, FileEvent::started, FileEvent::placed));
  check_file(info_, info_.files[1], folder_ / "data/tiny/test.gz");
}

TEST_F(Fetching, WrongContentIsNamed) {
  Server server([&](const Request&) { return Answer{.content = gzip(idx_images(5, 2, 3))}; });
  EXPECT_THAT(error([&] { fetch_data(info_, request(server.url())); }), HasSubstr("found 5 of 2 × 3"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "data/tiny"));
}

TEST_F(Fetching, KnownServersAreTriedInOrderOverHttpsOnly) {
  Server server([&](const Request& asked) { return serve(asked); });
  info_.servers = {server.url() + "/tiny/", "https://127.0.0.1:1/"};
  const std::string message = error([&] { fetch_data(info_, request("")); });
  EXPECT_THAT(message, HasSubstr("train.gz of 'tiny' could not be downloaded"));
  EXPECT_THAT(message, AllOf(HasSubstr(server.url()), HasSubstr("https://127.0.0.1:1/")));
  EXPECT_TRUE(server.requests().empty());
}

TEST_F(Fetching, WhatCannotBeGot) {
  EXPECT_THAT(input_error([&] { fetch_data(data_set_named("synthetic"), request("")); }),
              HasSubstr("generated by hone"));
  FetchRequest nowhere = request("");
  nowhere.folder = folder_ / "train";  // a file
  EXPECT_THAT(error([&] { fetch_data(info_, nowhere); }), HasSubstr("cannot create this folder"));
}

}  // namespace
}  // namespace hone
