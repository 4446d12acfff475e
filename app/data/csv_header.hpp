#pragma once

namespace hone {

// Whether the first line of a CSV file names the columns; automatic: if it looks so.
enum class CsvHeader { automatic, yes, no };

}  // namespace hone
