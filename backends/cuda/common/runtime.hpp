// Queries of the CUDA runtime: devices, addresses, streams and the kernels that are loaded.
#pragma once

#include <string>

#include "backends/dispatch/device_scope.hpp"

namespace samebits::cuda {

/// The runtime's queries, as the dispatch layer calls them.
extern const backends::device_runtime runtime;

/// Compute capabilities, as 10 * major + minor, of the current device and of its loaded kernels. A
/// device also runs PTX of older architectures. Kernels from older PTX lack the device's newer
/// instructions.
struct loaded_code {
  int capability;      ///< of the device
  int compiled_for;    ///< of the loaded kernels
  std::string reason;  ///< why no kernels are loaded; empty if they are
};
/// Asks the runtime once per device, then answers from a table.
loaded_code code_of_current_device();

/// The compute capability that the current device's kernels were compiled for.
///
/// @throws cuda_error if the device has no kernels
int compiled_capability();

}  // namespace samebits::cuda
