#pragma once

#include <algorithm>

namespace hone {

// Whether a team's caller should work without the others for a while, because the machine is so busy that rounds take
// longer than all of their work would take one thread: then the threads wait for each other to get a core most of the
// time. Times are in seconds. On a quiet machine a round is never half a millisecond slower than that.
class Solo {
 public:
  bool works_alone(double now) const { return now < until_; }

  // A round of the whole team that ended `now` took `wall` seconds, and its shares `work` seconds together.
  void learn(double now, double wall, double work) {
    constexpr double clear = 0.5e-3, enough = 10e-3;
    wall_ += wall;
    if (wall > work + clear) lost_ += wall - work;
    if (wall_ < enough) return;
    if (lost_ > 0.5 * wall_) {
      until_ = now + pause_;
      pause_ = std::min(longest, 2 * pause_);
    } else {
      pause_ = shortest;
    }
    wall_ = lost_ = 0;
  }

 private:
  static constexpr double shortest = 0.1, longest = 3;

  double wall_ = 0, lost_ = 0, until_ = 0, pause_ = shortest;
};

}  // namespace hone
