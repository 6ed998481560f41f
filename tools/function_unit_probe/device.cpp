// The instructions of a GPU, and the GPU's half of the probe if it is linked.
#include "function_unit_probe/device.hpp"

#include "samebits/error.hpp"

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
  if (samebits_function_unit_device == nullptr) {
    throw unsupported(
        "the GPU cannot be asked: this program is linked without "
        "samebits_function_unit_gpu, which needs a build with CUDA, and with SAMEBITS_DEEP_TESTS "
        "if the build has tests");
  }
  const device& found = *samebits_function_unit_device();
  if (const std::string reason = found.why_unsupported(); !reason.empty()) {
    throw unsupported("the GPU cannot be asked: " + reason);
  }
  return found;
}

}  // namespace samebits::function_units
