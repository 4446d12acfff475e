#include "python/src/watch.hpp"

namespace hone::python {

void Watch::tick(std::int64_t done) {
  using namespace std::chrono;
  if (std::this_thread::get_id() != thread_) return;
  const auto now = steady_clock::now();
  if (now - last_ < milliseconds(50)) return;
  last_ = now;
  call(done);
}

void Watch::say(const std::string& text, std::int64_t done) {
  if (std::this_thread::get_id() != thread_) return;
  if (text == text_) return tick(done);  // nothing new
  text_ = text;
  call(done);
}

void Watch::call(std::int64_t done) {
  if (leaving) throw Stopped();
  const nb::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
  if (!tell_.is_none()) tell_(nb::cast(text_.c_str()), done);
}

}  // namespace hone::python
