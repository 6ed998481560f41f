// The CUDA runtime as the library asks it: devices, addresses, streams, and the code that is
// loaded.
#pragma once

#include <string>

#include "backends/dispatch/device_scope.hpp"

namespace samebits::cuda {

extern const backends::device_runtime runtime;

/// Two compute capabilities, as 10 * major + minor: that of the current device, and the one that
/// its loaded kernels were compiled for. A device also runs PTX for older architectures. Kernels
/// from such PTX do not use the device's newer instructions.
struct loaded_code {
  int capability;
  int compiled_for;
  std::string reason;  ///< why no kernels are loaded; empty if they are
};
loaded_code code_of_current_device();

/// The compute capability that the current device's kernels were compiled for. Throws cuda_error.
int compiled_capability();

}  // namespace samebits::cuda
