// Parts: splits a range of elements into one contiguous chunk per thread.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backends/dispatch/backend.hpp"
#include "backends/threads/interruption.hpp"
#include "backends/threads/tasks.hpp"

namespace samebits::backends {

/// A thread with fewer elements costs more than it saves.
inline constexpr std::int64_t elements_worth_a_thread = 1 << 14;

/// Part number i of `parts` contiguous parts of [0, count), of nearly equal size.
inline element_range part_of(std::int64_t count, std::int64_t parts, std::int64_t i) {
  const auto edge = [&](std::int64_t at) {
    return static_cast<std::int64_t>(static_cast<__int128>(count) * at / parts);
  };
  return {edge(i), edge(i + 1)};
}

/// Runs part(range) over [0, count) on `threads` threads (0: one per hardware thread). Each range
/// is a contiguous part of at least `min_part` elements. Parts write disjoint elements, so
/// their number does not change the result. Every part runs even if few threads can be started.
/// The first exception of a part is rethrown after all have ended. If the caller has an interrupt
/// check, each thread calls part() for blocks of its range.
template <class Part>
void for_each_part(std::int64_t count, int threads, const Part& part,
                   std::int64_t min_part = elements_worth_a_thread) {
  const std::int64_t parts = std::clamp<std::int64_t>(
      count / min_part, 1, static_cast<std::int64_t>(thread_count(threads)));
  interruption interrupt;
  for_each_task(parts, [&](std::int64_t i) {
    interrupt.for_each_block(part_of(count, parts, i), 16 * std::max<std::int64_t>(min_part, 1),
                             part);
  });
}

/// The fewest items of `elements` elements each that are worth a thread.
constexpr std::int64_t items_worth_a_thread(std::int64_t elements) {
  return std::max<std::int64_t>(elements_worth_a_thread / std::max<std::int64_t>(elements, 1), 1);
}

/// Calls f(i) for all i in [0, count), as for_each_part() does. An item has about `elements` elements.
template <class Function>
void for_each_item(std::int64_t count, std::int64_t elements, int threads, const Function& f) {
  for_each_part(
      count, threads,
      [&](element_range range) {
        for (std::int64_t i = range.begin; i < range.end; ++i) f(i);
      },
      items_worth_a_thread(elements));
}

}  // namespace samebits::backends
