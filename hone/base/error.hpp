#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace hone {

// Something that a run cannot survive: a full disk, a parameter that is no longer finite.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Work was ended because somebody asked for it; it can be taken up again.
class Stopped : public Error {
 public:
  Stopped() : Error("stopped") {}
};

// The user's input is wrong. The message names the file, line, key or flag and what was expected;
// the program ends with exit code 2 and has written nothing.
class InputError : public Error {
 public:
  using Error::Error;
};

// The value of one key does not go with other keys or with the data. Thrown by those who do not know where the key was
// set; Settings::located (hone/run) puts that before the message.
class KeyError : public InputError {
 public:
  KeyError(std::string key, const std::string& message)
      : InputError(key + ": " + message), key_(std::move(key)), message_(message) {}

  const std::string& key() const { return key_; }
  const std::string& message() const { return message_; }  // without the key

 private:
  std::string key_, message_;
};

// Data do not fit a model. Thrown by those who do not know where the data come from.
class DataError : public InputError {
 public:
  using InputError::InputError;
};

}  // namespace hone
