// The self-test inside: what a backend brings to it, and what every compound call asks first.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string_view>

#include "backends/dispatch/backend.hpp"
#include "backends/self_test/probe_report.hpp"

namespace samebits::backends {

/// A backend's probes, and where they have passed. The second half is the only state that the
/// library keeps (docs/decisions/0009).
struct self_test_entry {
  /// Runs the probes compiled with the backend's flags; on a device, and waits for them.
  void (*run)(probe_report& report);
  /// Device backends: converts and quantizes some elements and compares the codes with the
  /// definition. Kernels that were compiled for another architecture show here.
  void (*run_codes)(code_report& report) = nullptr;

  std::mutex running = {};                  ///< held while a call tests
  std::atomic<std::uint64_t> passed = {0};  ///< bit d: on device d; host backends: bit 0
};

/// What every compound call, and every call on a device, does before it computes or writes. Tests
/// the backend if it has not passed (on the current device) yet; on the host also looks at this
/// thread's control register, which may have changed since. Threads that the caller then starts
/// inherit the register.
///
/// Throws environment_error if a check fails, each time anew, so that repairing the process helps;
/// and for an untested device backend whose stream is being captured.
void require_tested(const backend& b, void* stream = nullptr);

}  // namespace samebits::backends
