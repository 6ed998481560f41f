// Self-test, internal interface: the probes of a backend, and the check at the start of every
// compound call.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "backends/dispatch/backend.hpp"
#include "backends/self_test/probe_report.hpp"

namespace samebits::backends {

/// A backend's probes, and the devices on which they have passed. The latter is the only state that
/// the library keeps (docs/decisions/0009).
struct self_test_entry {
  /// Runs the probes, compiled with the backend's flags. On a device, waits for them.
  void (*run)(probe_report& report);
  /// Device backends: converts and quantizes some elements and compares the codes with the
  /// definition. This detects kernels compiled for another architecture.
  void (*run_codes)(code_report& report) = nullptr;

  std::mutex running = {};                  ///< held while a call runs the test
  std::atomic<std::uint64_t> passed = {0};  ///< bit d: passed on device d; host backends: bit 0
};

/// Called by every compound call, and by every call on a device, before it computes or writes.
/// Tests the backend unless it has already passed (on the current device). On the host it also
/// checks this thread's control register, which may have changed since. Threads that the caller
/// starts later inherit the register.
///
/// @throws environment_error  if a check fails. A failure is not remembered, so the process can be
///   repaired.
/// @throws environment_error  for an untested device backend whose stream is being captured
void require_tested(const backend& b, void* stream = nullptr);

}  // namespace samebits::backends
