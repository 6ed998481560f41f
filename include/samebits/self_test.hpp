// Self-test: whether this process, build and GPU compute in IEEE 754 steps, as compound calls need.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace samebits {

/// One check of one backend.
struct self_test_result {
  std::string_view backend;
  std::string_view check;  ///< e.g. "flush_to_zero"; docs/backends.md lists them
  bool passed;
  std::string detail;  ///< of a failure: what was seen, what it means, what to do; else empty
};

/// Runs the self-test of a backend, of every one that can run here if none is named, and reports.
/// Waits for the device.
///
/// A device backend is tested on the current device, by a kernel on a stream of its own. Failed
/// checks are results, not errors.
///
/// Throws invalid_argument and unsupported as find_executor does, and cuda_error where the device
/// cannot run the kernel.
std::vector<self_test_result> self_test(std::string_view backend = {});

/// Runs the self-test and remembers that the backend has passed; on a device, for the current one.
/// Compound calls, and all calls on a device, run it when they first meet a backend. Conversions on
/// the host need none. Call initialize() before capturing a CUDA graph, where the self-test cannot
/// run, and at the start of a process, to learn early that the process cannot compute correctly.
///
/// Throws environment_error naming every failed check, and what self_test throws.
void initialize(std::string_view backend = {});

}  // namespace samebits
