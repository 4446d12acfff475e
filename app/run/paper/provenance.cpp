#include "app/run/paper/provenance.hpp"

#include <fmt/format.h>

#include "app/run/provenance.hpp"
#include "hone/base/file.hpp"
#include "hone/engine/engines.hpp"

namespace hone {

std::string machine_text() {
  std::string text = host_text();
  if (const CudaSupport cuda = cuda_support(); cuda.missing.empty()) text += "; " + cuda.own_device().name;
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
