#include "app/report/gnuplot.hpp"

#include <fmt/format.h>

#include "app/run/run_folder.hpp"
#include "hone/base/error.hpp"
#include "hone/base/process.hpp"

namespace hone {

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
  const Finished finished = run_program({"gnuplot", figure.name + ".gp"}, folder);
  const std::filesystem::path log = folder / (figure.name + ".log");
  if (finished.status == 0) std::filesystem::remove(log);  // of an earlier failure
  if (finished.status == 0) return true;
  if (finished.status == program_not_found) return false;
  write_file(log, finished.output);
  throw Error(
      fmt::format("gnuplot could not draw {}; its message is in {}", (folder / figure.name).string(), log.string()));
}

}  // namespace hone
