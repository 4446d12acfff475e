#include "app/report/file_list.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "app/report/page.hpp"
#include "app/report/text.hpp"
#include "hone/base/file.hpp"

namespace hone {

namespace fs = std::filesystem;

std::string file_list(const std::vector<RunRecord>& runs, const fs::path& page_file, std::size_t most_listed) {
  const fs::path page = fs::absolute(page_file);
  std::string html;
  for (const RunRecord& run : runs) {
    html += fmt::format("<p>{}</p>\n", link_html(run.folder / "", page.parent_path(), run.name()));
    if (runs.size() > most_listed) continue;
    std::vector<fs::path> files;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(run.folder, ignored))
      if (!is_unfinished(entry.path()) && fs::absolute(entry.path()) != page) files.push_back(entry.path());
    std::ranges::sort(files);
    html += "<ul class=\"files\">\n";
    for (const fs::path& file : files) {
      const std::string name = file.filename().string();
      const bool folder = fs::is_directory(file, ignored);
      html += fmt::format("<li>{} <small>{}</small></li>\n",
                          link_html(folder ? file / "" : file, page.parent_path(), name + (folder ? "/" : "")),
                          folder ? "folder" : size_text(fs::file_size(file, ignored)));
    }
    html += "</ul>\n";
  }
  return html;
}

}  // namespace hone
