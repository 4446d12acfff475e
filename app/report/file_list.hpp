#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "app/report/run_record.hpp"

namespace hone {

// HTML with a link to every run folder and, if there are at most `most_listed` runs, to the files in it.
std::string file_list(const std::vector<RunRecord>& runs, const std::filesystem::path& page_file,
                      std::size_t most_listed);

}  // namespace hone
