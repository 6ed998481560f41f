// The host side of a ring of step reports. One thread of a kernel, or the host, writes reports to
// memory that both can access (cudaHostAlloc). Neither side waits for the other.
//
//   put_report(ring, report);               // in kernels: backends/cuda/training/device_report.cuh
//   ...
//   report_reader reader(ring);             // on the host, at any time
//   while (auto r = reader.poll()) log(*r);
//   if (reader.lost() != 0) ...             // the host polled too seldom
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "numerics/loss_scale/report_ring.hpp"
#include "samebits/core/step_report.hpp"

namespace samebits::backends {

/// Writes a report to a ring from the host; report.step is its number. A ring has one writer.
void put_report(std::span<numerics::report_slot> ring, const step_report& report);

/// Reads the reports of a ring while its writer continues; returns each report once and in order.
class report_reader {
 public:
  /// @param ring  at least one slot; must outlive the reader and be zero before its first report
  /// @param first  number of the first wanted report: the scaler's `steps` when it began
  /// @throws invalid_argument  for an empty ring
  explicit report_reader(std::span<const numerics::report_slot> ring, std::uint64_t first = 0);

  /// The next report; nothing if it is not written yet. Never waits.
  std::optional<step_report> poll();

  /// Number of reports that were overwritten before they were read. A non-zero count means that the
  /// host polls too seldom or that the ring is too small.
  [[nodiscard]] std::uint64_t lost() const { return lost_; }
  /// The number of the report that poll() returns next, unless it is lost.
  [[nodiscard]] std::uint64_t next() const { return next_; }

 private:
  std::span<const numerics::report_slot> ring_;
  std::uint64_t next_;
  std::uint64_t lost_ = 0;
};

}  // namespace samebits::backends
