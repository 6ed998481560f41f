// Pieces: a count of elements shared among threads.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backends/dispatch/backend.hpp"
#include "backends/threads/tasks.hpp"

namespace samebits::backends {

/// Below this a thread costs more than it saves.
inline constexpr std::int64_t elements_worth_a_thread = 1 << 14;

/// Piece i of `pieces` contiguous ones of about equal size of [0, count).
inline element_range piece_of(std::int64_t count, std::int64_t pieces, std::int64_t i) {
  const auto edge = [&](std::int64_t at) {
    return static_cast<std::int64_t>(static_cast<__int128>(count) * at / pieces);
  };
  return {edge(i), edge(i + 1)};
}

/// Runs part(range) over [0, count) on `threads` threads (0: one per hardware thread) in contiguous
/// pieces of at least `least_piece`; the pieces write disjoint elements, so their number cannot
/// show in the result. Every piece runs, however few threads can be started; the first exception of
/// a piece is rethrown when all have ended.
template <class Part>
void for_each_piece(std::int64_t count, int threads, const Part& part,
                    std::int64_t least_piece = elements_worth_a_thread) {
  const std::int64_t pieces = std::clamp<std::int64_t>(
      count / least_piece, 1, static_cast<std::int64_t>(thread_count(threads)));
  for_each_task(pieces, [&](std::int64_t i) { part(piece_of(count, pieces, i)); });
}

}  // namespace samebits::backends
