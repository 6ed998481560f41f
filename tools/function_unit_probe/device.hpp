// The interface between the function unit probe and a GPU. Includes no CUDA header.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "function_unit_probe/instruction_list.hpp"
#include "numerics/functions/exact_functions.hpp"

namespace samebits::function_units {

/// Instructions whose results numerics/hardware/function_units/ models.
#define SAMEBITS_NAME(ID, ...) ID,
enum class instruction : std::uint8_t { SAMEBITS_FUNCTION_UNIT_INSTRUCTIONS(SAMEBITS_NAME) };
#undef SAMEBITS_NAME

struct instruction_row {
  std::string_view name;  ///< in PTX, for example "ex2.approx.ftz.f32"
  int operand_bits;       ///< 16 or 32
  int capability;         ///< the lowest that has it, as 10 * major + minor
};
#define SAMEBITS_ROW(ID, PTX, BITS, CAPABILITY, MODEL) instruction_row{PTX, BITS, CAPABILITY},
inline constexpr std::array instruction_rows = {SAMEBITS_FUNCTION_UNIT_INSTRUCTIONS(SAMEBITS_ROW)};
#undef SAMEBITS_ROW
inline constexpr int instruction_count = static_cast<int>(instruction_rows.size());

constexpr const instruction_row& row_of(instruction what) {
  return instruction_rows[static_cast<std::size_t>(what)];
}
constexpr std::string_view name(instruction what) { return row_of(what).name; }
constexpr std::uint64_t operands_of(instruction what) {
  return std::uint64_t{1} << row_of(what).operand_bits;
}

/// Results of an instruction, at all operands, that differ from the model's.
struct comparison {
  unsigned long long differed;
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
  /// Compares the results of all operands with the model.
  comparison (*compare)(instruction what);
  /// The sum over all 2^32 operands of the results of cuda-native by the rule `exact`.
  std::uint64_t (*exact_sum)(const numerics::real::exact_row& f);
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
