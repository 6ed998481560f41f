// The instructions of a GPU, and the GPU's half of the probe if it is linked.
#include "function_unit_probe/device.hpp"

#include "gpu_probe/usable_device.hpp"

// Defined in the CMake target samebits_function_unit_gpu, whose link options pull the symbol in;
// null in a program without that library.
extern "C" [[gnu::weak]] const samebits::function_units::device* samebits_function_unit_device();

namespace samebits::function_units {

std::vector<instruction> instructions_of(const device& gpu) {
  std::vector<instruction> all;
  for (int i = 0; i < instruction_count; ++i) {
    const auto what = static_cast<instruction>(i);
    if (gpu.capability() >= row_of(what).capability) all.push_back(what);
  }
  return all;
}

const device& current_device() {
  return usable_device(samebits_function_unit_device, "the GPU",
                       "samebits_function_unit_gpu, which needs a build with CUDA, and with "
                       "SAMEBITS_DEEP_TESTS if the build has tests");
}

}  // namespace samebits::function_units
