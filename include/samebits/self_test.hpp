// Self-test: checks that this process, build and GPU compute in IEEE 754 steps, as compound calls
// require.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace samebits {

/// Result of one check of one backend.
struct self_test_result {
  std::string_view backend;
  std::string_view check;  ///< e.g. "flush_to_zero"; docs/backends.md lists them
  bool passed;
  std::string detail;  ///< of a failure: observation, meaning, remedy; else empty
};

/// Runs the self-test of backends and returns the results. Failed checks are results, not errors.
///
/// A device backend is tested on the current device, by a kernel on a stream of its own.
///
/// @param backend  the backend's name; empty: every backend that can run here
/// @returns one result per check
/// @throws invalid_argument and unsupported as find_executor() does.
/// @throws cuda_error if the device cannot run the kernel.
/// @note Waits for the device.
std::vector<self_test_result> self_test(std::string_view backend = {});

/// Runs the self-test and records that the backend has passed; for a device backend, on the current
/// device.
///
/// Compound calls, and all calls on a device, run the self-test when they first use a backend.
/// Conversions on the host need no self-test. Call initialize() before capturing a CUDA graph,
/// where the self-test cannot run. Call it at the start of a process to learn early that the
/// process cannot compute correctly.
///
/// @param backend  the backend's name; empty: every backend that can run here
/// @throws environment_error naming every failed check.
/// @throws as self_test() does.
void initialize(std::string_view backend = {});

}  // namespace samebits
