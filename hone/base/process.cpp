#include "hone/base/process.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

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

std::string read_all(int descriptor) {
  std::string text;
  std::array<char, 4096> buffer;
  for (;;) {
    const ssize_t count = ::read(descriptor, buffer.data(), buffer.size());
    if (count > 0) text.append(buffer.data(), static_cast<std::size_t>(count));
    if (count == 0 || (count < 0 && errno != EINTR)) return text;
  }
}

}  // namespace

Finished run_program(const std::vector<std::string>& words, const std::filesystem::path& folder) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const std::string inside = folder.string();
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw Error(words.front() + ": cannot create a pipe for its output");
  const pid_t child = ::fork();
  if (child == 0) become(arguments.data(), inside.c_str(), ends[1]);
  ::close(ends[1]);
  Finished finished;
  if (child > 0) finished.output = read_all(ends[0]);
  ::close(ends[0]);
  if (child < 0) throw Error(words.front() + ": cannot be started");
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) throw Error(words.front() + ": cannot be waited for");
  finished.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return finished;
}

}  // namespace hone
