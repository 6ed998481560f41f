// The CUDA runtime as the library asks it: devices, addresses, streams, and the code that is
// loaded.
#pragma once

#include <string>

#include "backends/device_scope.hpp"

namespace samebits::cuda {

extern const backends::device_runtime runtime;

/// The compute capability, as 10 * major + minor, of the current device, and that which its loaded
/// kernels were compiled for. A device runs PTX of older architectures, too: then the kernels lack
/// the newer one's instructions although the device has them.
struct loaded_code {
  int capability;
  int compiled_for;
  std::string reason;  ///< why there is none; else empty
};
loaded_code code_of_current_device();

/// The compute capability that the current device's kernels were compiled for. Throws cuda_error.
int compiled_capability();

}  // namespace samebits::cuda
