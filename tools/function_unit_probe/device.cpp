// The names of instructions, and the GPU's half of the probe if it is linked.
#include "function_unit_probe/device.hpp"

#include <array>

#include "samebits/error.hpp"

// Defined in the CMake target samebits_function_unit_gpu, whose link options pull the symbol in;
// null in a program without that library.
extern "C" [[gnu::weak]] const samebits::function_units::device* samebits_function_unit_device();

namespace samebits::function_units {

std::string_view name(instruction what) {
  static constexpr std::array<std::string_view, instruction_count> names = {
      "ex2.approx.ftz.f32",    "ex2.approx.f32",  "lg2.approx.ftz.f32",   "lg2.approx.f32",
      "rcp.approx.ftz.f32",    "rcp.approx.f32",  "rsqrt.approx.ftz.f32", "rsqrt.approx.f32",
      "sqrt.approx.ftz.f32",   "sqrt.approx.f32", "sin.approx.ftz.f32",   "cos.approx.ftz.f32",
      "tanh.approx.f32",       "ex2.approx.f16",  "ex2.approx.f16x2",     "ex2.approx.ftz.bf16",
      "ex2.approx.ftz.bf16x2", "tanh.approx.f16", "tanh.approx.f16x2",    "tanh.approx.bf16",
      "tanh.approx.bf16x2"};
  return names[static_cast<std::size_t>(what)];
}

std::vector<instruction> instructions_of(const device& gpu) {
  std::vector<instruction> all;
  for (int i = 0; i < instruction_count; ++i) {
    const auto what = static_cast<instruction>(i);
    if (gpu.capability() >= required_capability(what)) all.push_back(what);
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
