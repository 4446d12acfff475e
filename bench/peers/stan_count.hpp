#pragma once

#include <atomic>
#include <cstdint>
#include <type_traits>

// Counts evaluations of a Stan model: stan_peers.py puts a call of count into the code that stanc writes.
namespace peers {

inline std::atomic<std::int64_t> gradients{0};  // with autodiff types
inline std::atomic<std::int64_t> values{0};     // with doubles

template <class T>
void count() {
  ++(std::is_same_v<T, double> ? values : gradients);
}

}  // namespace peers
