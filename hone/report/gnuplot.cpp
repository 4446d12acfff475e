#include "hone/report/gnuplot.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hone/base/error.hpp"
#include "hone/run/run_folder.hpp"

namespace hone {
namespace {

constexpr int not_found = 127;

// Runs gnuplot on a script inside `folder`; its messages go to a log beside the script. Returns its exit status.
int run_gnuplot(const std::filesystem::path& folder, const std::string& script, const std::string& log) {
  const pid_t child = ::fork();
  if (child < 0) throw Error("gnuplot cannot be started");
  if (child == 0) {
    if (::chdir(folder.c_str()) != 0 || !std::freopen(log.c_str(), "w", stderr) ||
        !std::freopen("/dev/null", "w", stdout))
      ::_exit(1);
    ::execlp("gnuplot", "gnuplot", script.c_str(), nullptr);
    ::_exit(not_found);
  }
  int status = 0;
  if (::waitpid(child, &status, 0) < 0) throw Error("gnuplot cannot be waited for");
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

}  // namespace

bool draw(const Figure& figure, const std::filesystem::path& folder) {
  const std::string script = fmt::format(
      "# Draws {0}.svg and {0}.png: gnuplot {0}.gp\n"
      "do for [format in \"svg png\"] {{\n"
      "  if (format eq \"svg\") {{\n"
      "    set terminal svg size {1},{2} dynamic background \"white\" font \"Helvetica,14\"\n"
      "  }} else {{\n"
      "    set terminal pngcairo size {1},{2} background \"white\" font \"Helvetica,12\"\n"
      "  }}\n"
      "  set output \"{0}.\".format\n"
      "  load \"{0}_body.gp\"\n"
      "  set output\n"
      "}}\n",
      figure.name, figure.width, figure.height);
  write_file(folder / (figure.name + ".gp"), script);
  write_file(folder / (figure.name + "_body.gp"), figure.script);
  const std::filesystem::path log = folder / (figure.name + ".log");
  const int status = run_gnuplot(folder, figure.name + ".gp", figure.name + ".log");
  if (status == 0 || status == not_found) {
    std::error_code ignored;
    std::filesystem::remove(log, ignored);
    return status == 0;
  }
  throw Error(fmt::format("gnuplot could not draw {}; its message is in {}", (folder / figure.name).string(),
                          log.string()));
}

}  // namespace hone
