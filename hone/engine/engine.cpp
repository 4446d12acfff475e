#include "hone/engine/engine.hpp"

#include <stdexcept>

#include "hone/base/error.hpp"

namespace hone {

void Engine::train(std::uint32_t iterations, TrainMetrics& metrics) {
  if (runs() != 1) throw std::logic_error("training several runs needs metrics for each of them");
  train(iterations, std::span(&metrics, 1));
  if (!failure().empty()) throw Error(failure());
}

}  // namespace hone
