// The host's side of a ring of step reports. One thread of a kernel, or the host, leaves the
// reports in memory that both see (cudaHostAlloc). Neither waits for the other.
//
//   put_report(ring, report);               // in kernels: backends/cuda/training/device_report.cuh
//   ...
//   report_reader reader(ring);             // on the host, at any time
//   while (auto r = reader.poll()) log(*r);
//   if (reader.lost() != 0) ...             // the host came too seldom
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "numerics/loss_scale/report_ring.hpp"
#include "samebits/core/step_report.hpp"

namespace samebits::backends {

/// Leaves a report in a ring, from the host; its number is report.step. The ring has one writer.
void put_report(std::span<numerics::report_slot> ring, const step_report& report);

/// Reads the reports of a ring, each once and in order, while its writer goes on.
class report_reader {
 public:
  /// Of a ring of one slot or more, in memory that outlives the reader, zero before its first
  /// report. `first` is the number of the first report wanted: the scaler's `steps` when it began.
  /// Throws invalid_argument for an empty ring.
  explicit report_reader(std::span<const numerics::report_slot> ring, std::uint64_t first = 0);

  /// The next report, or nothing where it has not been left yet. Never waits.
  std::optional<step_report> poll();

  /// Reports that were overwritten before they were read: the host came too seldom, or the ring is
  /// too small.
  [[nodiscard]] std::uint64_t lost() const { return lost_; }
  /// The number of the report that poll() gives next, if that is not lost.
  [[nodiscard]] std::uint64_t next() const { return next_; }

 private:
  std::span<const numerics::report_slot> ring_;
  std::uint64_t next_;
  std::uint64_t lost_ = 0;
};

}  // namespace samebits::backends
