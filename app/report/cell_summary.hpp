#pragma once

#include <fmt/format.h>

#include <optional>

#include "app/report/training_results.hpp"
#include "app/run/cells.hpp"
#include "app/run/json.hpp"
#include "hone/base/error.hpp"
#include "hone/base/file.hpp"

namespace hone {

// What `read` finds in a cell's summary.json; nothing if the cell is not done. If an entry is missing or of another
// type, another version wrote it: an InputError that names the file.
template <class Read>
auto read_cell(const ReportContext& context, const Cell& cell, Read read)
    -> std::optional<decltype(read(std::declval<const Json&>()))> {
  if (!is_done(context.folder, cell)) return {};
  const auto path = context.folder / "cells" / cell.id / "summary.json";
  const Json json = parse_json(read_file(path));
  try {
    return read(json);
  } catch (const Json::exception& error) {
    throw InputError(
        fmt::format("{}: is not what this version writes ({}); remove its folder, and the same command "
                    "makes it again",
                    path.string(), error.what()));
  }
}

}  // namespace hone
