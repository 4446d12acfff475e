#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "app/data/download.hpp"
#include "app/data/registry.hpp"

namespace hone {

enum class FileEvent { present, started, placed };

struct FetchRequest {
  std::filesystem::path folder;  // gets a folder with the data set's name
  std::string url;               // the user's own server, http allowed: url/mnist/…; empty: the known ones
  DownloadLimits limits;
  std::function<void(const DataFile&, FileEvent)> event;                   // may be empty
  std::function<void(const DataFile&, const DownloadProgress&)> progress;  // may be empty
};

// Downloads the files of a data set that are missing or broken. Checks every file before it is renamed, and tries
// servers in order. Throws Error with each server's reason, and InputError for a set that cannot be downloaded. Returns
// the data set's folder.
std::filesystem::path fetch_data(const DataSetInfo& info, const FetchRequest& request);

}  // namespace hone
