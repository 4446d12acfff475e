#include "app/data/fetch.hpp"

#include <fmt/format.h>

#include <system_error>

#include "app/data/check.hpp"

namespace hone {
namespace {

namespace fs = std::filesystem;

bool is_good(const DataSetInfo& info, const DataFile& file, const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return false;
  try {
    check_file(info, file, path);
    return true;
  } catch (const InputError&) {
    return false;
  }
}

void fetch_file(const DataSetInfo& info, const DataFile& file, const fs::path& folder, const FetchRequest& request) {
  Download one;
  one.destination = folder / file.published;
  one.largest = content_bytes(info, file) + content_bytes(info, file) / 100 + 4096;  // gzip may add a little
  one.limits = request.limits;
  one.allow_http = !request.url.empty();
  if (request.progress) one.progress = [&](const DownloadProgress& at) { request.progress(file, at); };
  one.check = [&](const fs::path& path) { check_file(info, file, path); };

  std::vector<std::string> servers = info.servers;
  if (!request.url.empty()) servers = {request.url + (request.url.ends_with('/') ? "" : "/") + info.name + "/"};
  std::string reasons;
  for (const std::string& server : servers) {
    try {
      one.url = server + file.published;
      download(one);
      return;
    } catch (const ServerError& error) {
      reasons += fmt::format("\n  {}", error.what());
    }
  }
  throw Error(fmt::format("{} of '{}' could not be downloaded:{}", file.published, info.name, reasons));
}

}  // namespace

fs::path fetch_data(const DataSetInfo& info, const FetchRequest& request) {
  if (info.files.empty()) throw InputError(fmt::format("data set '{}' is made by code: nothing to get", info.name));
  const fs::path folder = request.folder / info.name;
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw Error(fmt::format("{}: the folder cannot be made: {}", folder.string(), error.message()));
  const auto tell = [&](const DataFile& file, FileEvent event) {
    if (request.event) request.event(file, event);
  };
  for (const DataFile& file : info.files) {
    if (is_good(info, file, folder / file.published)) {
      tell(file, FileEvent::present);
      continue;
    }
    tell(file, FileEvent::started);
    fetch_file(info, file, folder, request);
    tell(file, FileEvent::placed);
  }
  return folder;
}

}  // namespace hone
