// Report ring: passes records from one writer to one reader; neither waits. The ring counts records
// that were overwritten before they were read; it never returns a mixture of two records.
//
// The ticket of a slot names the record that the slot holds. The ticket is odd while the record is
// being written. The reader loads the ticket before and after it copies the words. If both loads
// name the wanted record, the copy is complete (a sequence lock; Boehm, MSPC 2012).
#pragma once

#include <cstdint>

#include "samebits/core/config.hpp"
#include "samebits/core/step_report.hpp"

namespace samebits::numerics {

/// A report as 64-bit words, the form in which it travels from a device to the host.
struct report_words {
  std::uint64_t word[sizeof(step_report) / sizeof(std::uint64_t)] = {};
};
static_assert(sizeof(report_words) == sizeof(step_report) && sizeof(step_report) == 64,
              "no padding, which would travel undefined");

/// A slot of a ring of reports. All zero before its first report.
struct report_slot {
  /// 2k + 1 while report k is being written, 2k + 2 once report k is complete.
  std::uint64_t ticket = 0;
  report_words report = {};
};

SAMEBITS_INLINE constexpr std::uint64_t ticket_writing(std::uint64_t record) {
  return 2 * record + 1;
}
SAMEBITS_INLINE constexpr std::uint64_t ticket_done(std::uint64_t record) { return 2 * record + 2; }
/// The number of the record to which a non-zero ticket belongs.
SAMEBITS_INLINE constexpr std::uint64_t record_of(std::uint64_t ticket) { return (ticket - 1) / 2; }

// The template parameter Memory has load(word) and store(word, value), which act at once and
// exactly as written. Its fence() orders all loads and stores for all processors that share the
// ring.

/// Writes record number report.step.
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

/// The result of take_report().
enum class report_found : std::uint8_t {
  here,
  not_yet,      ///< the record has not been written
  overwritten,  ///< a later record replaced it; `next` is where to continue
};

/// Reads record number `next` and advances `next` by one. If the record was overwritten, advances
/// `next` to the oldest record that may still be in the ring.
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
