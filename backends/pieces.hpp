// Pieces: a count of elements shared among threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

#include "backends/backend.hpp"

namespace samebits::backends {

/// Below this a thread costs more than it saves.
inline constexpr std::int64_t elements_worth_a_thread = 1 << 14;

/// Runs part(range) over [0, count) on `threads` threads (0: one per hardware thread) in contiguous
/// pieces of at least `least_piece`; the pieces write disjoint elements, so their number cannot
/// show in the result.
template <class Part>
void for_each_piece(std::int64_t count, int threads, const Part& part,
                    std::int64_t least_piece = elements_worth_a_thread) {
  if (threads == 0) threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const std::int64_t pieces =
      std::clamp<std::int64_t>(count / least_piece, 1, static_cast<std::int64_t>(threads));
  const auto edge = [&](std::int64_t i) {
    return static_cast<std::int64_t>(static_cast<__int128>(count) * i / pieces);
  };
  std::vector<std::jthread> workers;
  for (std::int64_t i = 1; i < pieces; ++i) {
    workers.emplace_back([&part, begin = edge(i), end = edge(i + 1)] {
      part(element_range{begin, end});
    });
  }
  part(element_range{0, edge(1)});
}

}  // namespace samebits::backends
