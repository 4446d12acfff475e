#pragma once

#include <stdexcept>

namespace hone {

// Something that a run cannot survive: a full disk, a parameter that is no longer finite.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The user's input is wrong. The message names the file, line, key or flag and what was expected;
// the program ends with exit code 2 and has written nothing.
class InputError : public Error {
 public:
  using Error::Error;
};

}  // namespace hone
