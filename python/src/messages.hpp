#pragma once

#include <string>

namespace hone::python {

// The library's message, with arguments of Python's in place of the program's flags and keys. Commands of other
// programs stay what they are, and so does what pip said.
std::string in_python(std::string text);

}  // namespace hone::python
