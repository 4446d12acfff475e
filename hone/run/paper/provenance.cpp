#include "hone/run/paper/provenance.hpp"

#include <fmt/format.h>

#include <fstream>
#include <thread>

#include "hone/base/file.hpp"
#include "hone/engine/cuda/cuda_engine.hpp"

namespace hone {
namespace {

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name"))
      if (const auto colon = line.find(": "); colon != std::string::npos) return line.substr(colon + 2);
  return "a processor that does not tell its name";
}

}  // namespace

std::string machine_text() {
  std::string text = fmt::format("{}, {} threads", processor(), std::thread::hardware_concurrency());
  if (const CudaSupport cuda = cuda_support(); cuda.missing.empty()) text += "; " + cuda.devices.front().name;
  return text;
}

std::string read_provenance(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "provenance.txt";
  return std::filesystem::exists(path) ? read_file(path) : "";
}

void note_provenance(const std::filesystem::path& folder, const std::string& version, const std::string& command) {
  const std::string line = fmt::format("{}; {}; {}\n", version, machine_text(), command);
  const std::string known = read_provenance(folder);
  if (("\n" + known).find("\n" + line) == std::string::npos) write_file(folder / "provenance.txt", known + line);
}

}  // namespace hone
