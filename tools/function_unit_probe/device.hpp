// The interface between the function unit probe and a GPU. Includes no CUDA header.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "numerics/functions/exact_functions.hpp"

namespace samebits::function_units {

/// Instructions whose results numerics/hardware/function_units/ models. Those of 16 bits compute
/// one number in the low half of a word, or two in both halves.
enum class instruction : std::uint8_t {
  ex2_ftz,
  ex2,
  lg2_ftz,
  lg2,
  rcp_ftz,
  rcp,
  rsqrt_ftz,
  rsqrt,
  sqrt_ftz,
  sqrt,
  sin_ftz,
  cos_ftz,
  tanh,
  ex2_f16,
  ex2_f16x2,
  ex2_ftz_bf16,
  ex2_ftz_bf16x2,
  tanh_f16,
  tanh_f16x2,
  tanh_bf16,
  tanh_bf16x2,
};
inline constexpr int instruction_count = 21;

/// Bits of an instruction's operand: 16 or 32.
constexpr int operand_bits(instruction what) {
  using enum instruction;
  const bool half =
      what == ex2_f16 || what == ex2_ftz_bf16 || what == tanh_f16 || what == tanh_bf16;
  return half ? 16 : 32;
}
/// The compute capability from which an instruction exists, as 10 * major + minor.
constexpr int required_capability(instruction what) {
  using enum instruction;
  const bool bf16 =
      what == ex2_ftz_bf16 || what == ex2_ftz_bf16x2 || what == tanh_bf16 || what == tanh_bf16x2;
  return bf16 ? 90 : 75;
}

/// The instruction's name in PTX, for example "ex2.approx.ftz.f32".
std::string_view name(instruction what);

/// Results of an instruction that differ from the model's.
struct comparison {
  std::uint64_t compared;
  std::uint64_t differed;
  std::uint32_t operand;  ///< of one result that differs
  std::uint32_t result;   ///< of the GPU
  std::uint32_t expected;
};

/// Operands of the sum of a function of the rule `exact`: exact_rows has the sums.
inline constexpr std::uint64_t exact_operands = std::uint64_t{1} << 32;

/// The functions of a GPU. All but why_unsupported() throw if the GPU fails.
struct device {
  std::string (*why_unsupported)();  ///< empty if there is a GPU that this build has kernels for
  std::string (*description)();      ///< name, compute capability, CUDA version
  /// Compute capability of the GPU, or that of the loaded kernels if lower: 10 * major + minor.
  int (*capability)();
  /// Compares the results of all operands with the model: 2^32 or 2^16.
  comparison (*compare)(instruction what);
  /// The sum over all 2^32 operands of the results of cuda-native by the rule `exact`.
  std::uint64_t (*exact_sum)(numerics::real::exact_function f);
};

/// The instructions that the GPU and the loaded kernels have.
std::vector<instruction> instructions_of(const device& gpu);

/// The current GPU.
///
/// @throws unsupported if there is none, or if the program is linked without the CMake target
///   samebits_function_unit_gpu, which needs a build with CUDA, and with SAMEBITS_DEEP_TESTS if
///   the build has tests
const device& current_device();

}  // namespace samebits::function_units
