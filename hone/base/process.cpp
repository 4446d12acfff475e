#include "hone/base/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <exception>

#include "hone/base/error.hpp"

namespace hone {
namespace {

// Between fork and exec only async-signal-safe functions may be called, since the process has threads.
[[noreturn]] void become(char* const* arguments, const char* folder, int output) {
  const int input = ::open("/dev/null", O_RDONLY);
  if (input < 0 || ::dup2(input, STDIN_FILENO) < 0 || ::dup2(output, STDOUT_FILENO) < 0 ||
      ::dup2(output, STDERR_FILENO) < 0 || (*folder && ::chdir(folder) != 0))
    ::_exit(126);
  ::execvp(arguments[0], arguments);
  ::_exit(program_not_found);
}

// Reads to the end of the output; false if stop() became true before.
bool read_all(int descriptor, const std::function<bool()>& stop, std::string& text) {
  constexpr int milliseconds = 50;
  std::array<char, 4096> buffer;
  for (;;) {
    if (stop) {
      if (stop()) return false;
      pollfd output{.fd = descriptor, .events = POLLIN, .revents = 0};
      if (::poll(&output, 1, milliseconds) <= 0) continue;
    }
    const ssize_t count = ::read(descriptor, buffer.data(), buffer.size());
    if (count > 0) text.append(buffer.data(), static_cast<std::size_t>(count));
    if (count == 0 || (count < 0 && errno != EINTR)) return true;
  }
}

}  // namespace

Finished run_program(const std::vector<std::string>& words, const std::filesystem::path& folder,
                     const std::function<bool()>& stop) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const std::string inside = folder.string();
  const bool own_group = static_cast<bool>(stop);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw Error(words.front() + ": cannot create a pipe for its output");
  const pid_t child = ::fork();
  if (child == 0) {
    if (own_group) ::setpgid(0, 0);
    become(arguments.data(), inside.c_str(), ends[1]);
  }
  if (child > 0 && own_group) ::setpgid(child, child);  // here too: whichever of the two processes comes first
  ::close(ends[1]);
  Finished finished;
  std::exception_ptr stopped;
  try {
    if (child > 0 && !read_all(ends[0], stop, finished.output)) throw Stopped();
  } catch (...) {  // stop() itself may throw
    stopped = std::current_exception();
    ::kill(-child, SIGKILL);
  }
  ::close(ends[0]);
  if (child < 0) throw Error(words.front() + ": cannot be started");
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) throw Error(words.front() + ": cannot be waited for");
  if (stopped) std::rethrow_exception(stopped);
  finished.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return finished;
}

}  // namespace hone
