#pragma once

#include <memory>
#include <string>

#include "hone/base/error.hpp"

namespace hone {

// What a configuration points to. Throws InputError that names it if the pointer is null.
template <class T>
const T& given(const std::shared_ptr<const T>& pointer, const char* what) {
  if (!pointer) throw InputError(std::string("the configuration has no ") + what);
  return *pointer;
}

}  // namespace hone
