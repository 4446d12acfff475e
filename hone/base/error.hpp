#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace hone {

/// Something that a run cannot survive: a full disk, a parameter that is no longer finite.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The work ended because somebody asked for it. It can be resumed.
class Stopped : public Error {
 public:
  Stopped() : Error("stopped") {}
};

/// The user's input is wrong. The message names the file, line, key or flag and says what was expected.
class InputError : public Error {
 public:
  using Error::Error;
};

/// The value of one configuration key does not suit other keys or the data. It is thrown by code that does not know
/// where the key was set; the application adds that.
class KeyError : public InputError {
 public:
  /// The whole message is "KEY: MESSAGE".
  KeyError(std::string key, const std::string& message)
      : InputError(key + ": " + message), key_(std::move(key)), message_(message) {}

  /// The key, as a configuration file spells it.
  const std::string& key() const { return key_; }
  /// The message without the key.
  const std::string& message() const { return message_; }

 private:
  std::string key_, message_;
};

/// Data do not suit a model. It is thrown by code that does not know where the data come from.
class DataError : public InputError {
 public:
  using InputError::InputError;
};

}  // namespace hone
