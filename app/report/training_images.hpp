#pragma once

#include "app/report/page.hpp"
#include "app/report/run_record.hpp"

namespace hone {

// The pictures of a training run (run/train_pictures.hpp), or why it has none. Throws InputError if their files are
// damaged.
void write_images(const RunRecord& run, Page& page);

}  // namespace hone
