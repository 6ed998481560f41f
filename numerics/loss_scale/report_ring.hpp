// Report ring: records that one writer leaves and one reader takes without either waiting; what was
// overwritten before it was read is counted, never mixed up.
//
// A slot's ticket says which record it holds, and is odd while that is being written. The reader
// looks at it before and after it copies the words: where both say the record is there, the copy is
// whole (a sequence lock; Boehm, MSPC 2012).
#pragma once

#include <cstdint>

#include "samebits/core/config.hpp"
#include "samebits/core/step_report.hpp"

namespace samebits::numerics {

/// A report as words, which is how it travels between a device and the host.
struct report_words {
  std::uint64_t word[sizeof(step_report) / sizeof(std::uint64_t)] = {};
};
static_assert(sizeof(report_words) == sizeof(step_report) && sizeof(step_report) == 64,
              "no padding, which would travel undefined");

/// A place in a ring of reports. Zero before the first one.
struct report_slot {
  /// 2k + 1 while report k is written, 2k + 2 once it is there.
  std::uint64_t ticket = 0;
  report_words report = {};
};

SAMEBITS_INLINE constexpr std::uint64_t ticket_writing(std::uint64_t record) {
  return 2 * record + 1;
}
SAMEBITS_INLINE constexpr std::uint64_t ticket_done(std::uint64_t record) { return 2 * record + 2; }
/// The record that a ticket which is not 0 is of.
SAMEBITS_INLINE constexpr std::uint64_t record_of(std::uint64_t ticket) { return (ticket - 1) / 2; }

// Memory: load(word), store(word, value), each at once and as written, and fence(), which no load
// or store passes, for the processors that share the ring.

/// Leaves record number report.step.
template <class Memory>
SAMEBITS_HD constexpr void put_report(report_slot* slots, std::uint64_t capacity,
                                      const step_report& report) {
  report_slot& slot = slots[report.step % capacity];
  const auto words = __builtin_bit_cast(report_words, report);
  Memory::store(slot.ticket, ticket_writing(report.step));
  Memory::fence();
  for (std::uint64_t i = 0; i < sizeof(words) / sizeof(std::uint64_t); ++i) {
    Memory::store(slot.report.word[i], words.word[i]);
  }
  Memory::fence();
  Memory::store(slot.ticket, ticket_done(report.step));
}

enum class report_found : std::uint8_t {
  here,
  not_yet,      ///< the record has not been written
  overwritten,  ///< by a later one; where to go on is in `next`
};

/// Takes record number `next` and moves on to the one after it; or moves to the oldest record that
/// may still be there.
template <class Memory>
SAMEBITS_HD constexpr report_found take_report(const report_slot* slots, std::uint64_t capacity,
                                               std::uint64_t& next, step_report& report) {
  const report_slot& slot = slots[next % capacity];
  const std::uint64_t before = Memory::load(slot.ticket);
  if (before < ticket_done(next)) return report_found::not_yet;
  report_words words;
  Memory::fence();
  for (std::uint64_t i = 0; i < sizeof(words) / sizeof(std::uint64_t); ++i) {
    words.word[i] = Memory::load(slot.report.word[i]);
  }
  Memory::fence();
  const std::uint64_t after = Memory::load(slot.ticket);
  if (after == ticket_done(next)) {
    report = __builtin_bit_cast(step_report, words);
    ++next;
    return report_found::here;
  }
  next = record_of(after) - capacity + 1;
  return report_found::overwritten;
}

}  // namespace samebits::numerics
