#pragma once

namespace CLI {
class App;
}

namespace hone {

// Adds `data` with `list`, `get`, `verify` and `show`. Their callbacks throw InputError and Error.
void add_data_command(CLI::App& app);

}  // namespace hone
