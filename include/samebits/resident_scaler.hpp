// The resident scaler: a loss scaler whose decisions are taken where the gradients are, and whose
// reports a host may read whenever it likes.
//
// One thread of a kernel, or the host, decides each step and leaves a report in a ring in memory
// that both see (cudaHostAlloc), without either waiting for the other:
//
//   const step_report now = decide(settings, scaler, observed, {.squares = sum, .max_norm = 1.0});
//   put_report(ring, now);                     // in kernels: samebits/kernel/device_report.cuh
//   ...
//   samebits::report_reader reader(ring);                // on the host, at any time
//   while (auto r = reader.poll()) log(*r);
//   if (reader.lost() != 0) ...                          // it came too seldom
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "numerics/loss_scale/decide.hpp"
#include "samebits/core/loss_scaling.hpp"
#include "samebits/core/step_report.hpp"

namespace samebits {

/// Decides a step: advances the policy and the counts, and says in the report whether the optimizer
/// applies it and what it multiplies gradients by. Integer arithmetic on the host, in kernels and
/// at compile time; settings and state must be valid (check_settings), `observed` of all ranks.
template <class Settings, class State>
SAMEBITS_HD constexpr step_report decide(const Settings& settings, resident_scaler<State>& scaler,
                                         const rank_observation& observed) {
  return numerics::decide(settings, scaler, observed);
}

/// The same with the gradients' norm in the report and, where it exceeds max_norm, in grad_mul. A
/// sum of squares that is not finite counts as a non-finite gradient.
template <class Settings, class State>
SAMEBITS_HD constexpr step_report decide(const Settings& settings, resident_scaler<State>& scaler,
                                         const rank_observation& observed,
                                         const norm_clipping& clipping) {
  return numerics::decide(settings, scaler, observed, clipping);
}

/// Leaves a report in a ring, from the host; its number is report.step. The ring has one writer.
void put_report(std::span<report_slot> ring, const step_report& report);

/// Reads the reports of a ring, each once and in order, while its writer goes on.
class report_reader {
 public:
  /// Of a ring of one slot or more, in memory that outlives the reader, zero before its first
  /// report. `first` is the number of the first report wanted: the scaler's `steps` when it began.
  /// Throws invalid_argument for an empty ring.
  explicit report_reader(std::span<const report_slot> ring, std::uint64_t first = 0);

  /// The next report, or nothing where it has not been left yet. Never waits.
  std::optional<step_report> poll();

  /// Reports that were overwritten before they were read: the host came too seldom, or the ring is
  /// too small.
  [[nodiscard]] std::uint64_t lost() const { return lost_; }
  /// The number of the report that poll() gives next, if that is not lost.
  [[nodiscard]] std::uint64_t next() const { return next_; }

 private:
  std::span<const report_slot> ring_;
  std::uint64_t next_;
  std::uint64_t lost_ = 0;
};

}  // namespace samebits
