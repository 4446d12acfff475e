#include "app/run/provenance.hpp"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <fstream>
#include <thread>

namespace hone {
namespace {

// From Linux's /proc; empty elsewhere, or if it has no entry.
std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name"))
      if (const auto colon = line.find(": "); colon != std::string::npos) return line.substr(colon + 2);
  return "";
}

}  // namespace

std::string hone_version() { return HONE_VERSION; }

std::string host_text() {
  const std::string processor = processor_name();
  utsname system{};
  const bool known = ::uname(&system) == 0;
  const unsigned threads = std::thread::hardware_concurrency();
  return fmt::format("{}{}{} thread{}{}", processor, processor.empty() ? "" : ", ", threads, threads == 1 ? "" : "s",
                     known ? fmt::format(", {} {}", system.sysname, system.machine) : "");
}

}  // namespace hone
