// Pieces: splits a range of elements into one contiguous chunk per thread.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backends/dispatch/backend.hpp"
#include "backends/threads/tasks.hpp"

namespace samebits::backends {

/// A thread with fewer elements costs more than it saves.
inline constexpr std::int64_t elements_worth_a_thread = 1 << 14;

/// Chunk number i of `pieces` contiguous chunks of [0, count), of nearly equal size.
inline element_range piece_of(std::int64_t count, std::int64_t pieces, std::int64_t i) {
  const auto edge = [&](std::int64_t at) {
    return static_cast<std::int64_t>(static_cast<__int128>(count) * at / pieces);
  };
  return {edge(i), edge(i + 1)};
}

/// Runs part(range) over [0, count) on `threads` threads (0: one per hardware thread). Each range
/// is a contiguous chunk of at least `least_piece` elements. Chunks write disjoint elements, so
/// their number does not change the result. Every chunk runs even if few threads can be started.
/// The first exception of a chunk is rethrown after all have ended.
template <class Part>
void for_each_piece(std::int64_t count, int threads, const Part& part,
                    std::int64_t least_piece = elements_worth_a_thread) {
  const std::int64_t pieces = std::clamp<std::int64_t>(
      count / least_piece, 1, static_cast<std::int64_t>(thread_count(threads)));
  for_each_task(pieces, [&](std::int64_t i) { part(piece_of(count, pieces, i)); });
}

}  // namespace samebits::backends
