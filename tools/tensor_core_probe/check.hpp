// Tensor core check: compares this machine's GPU, or recorded results of a GPU, with the rows of
// tensor_unit.hpp.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "samebits/core/tensor_unit.hpp"
#include "tensor_core_probe/fit.hpp"
#include "tensor_core_probe/result.hpp"

namespace samebits {

/// The comparison of one instruction with its reference row.
struct tensor_core_finding {
  std::string instruction;  ///< "wgmma_e4m3", "mma_f16_k16"
  tensor_unit unit;         ///< unit of the reference row
  evidence known;           ///< evidence behind the row for this result format
  /// Whether hardware or published results support this row on this exact GPU. If not, the row is
  /// the nearest known.
  bool confirmed;
  std::uint64_t compared;                ///< results compared
  std::uint64_t differed;                ///< results that differ from those of the row
  std::string first_difference;          ///< family, codes, result, expected result; empty if none
  std::vector<tensor_core_result> kept;  ///< options.keep results of each family
  /// Rules that would match. Searched only if results differ and options.fit is set.
  std::optional<backends::tensor_cores::fit_result> fit;
};

/// Options of check_tensor_cores().
struct tensor_core_check_options {
  std::optional<tensor_unit> unit = {};  ///< check only this unit
  std::string_view instruction = {};     ///< only this name; see tensor_core_instruction_names()
  /// Cases of each family and instruction, at least 1; rounded up to whole tiles of 16 (wgmma: 64).
  /// The row of a case is multiplied with the columns of up to 16 tiles: from 16 tiles on, a case
  /// makes 128 results.
  std::uint64_t cases = 8192;
  std::uint64_t seed = 0;
  int keep = 0;     ///< results of each family to keep in a finding, 0 to 8
  bool fit = true;  ///< search for matching rules if results differ
  /// Called with each finding as soon as the finding is complete, in the order of the returned
  /// findings.
  std::function<void(const tensor_core_finding&)> on_result = {};
};

/// The current CUDA device.
struct tensor_core_gpu {
  std::string name;
  int major;  ///< compute capability
  int minor;
};

/// Returns the name and compute capability of the current CUDA device.
///
/// @throws unsupported if there is no GPU
/// @throws unsupported if the program is linked without the CMake target
///   samebits_tensor_core_gpu, which needs a build with CUDA
tensor_core_gpu current_tensor_core_gpu();

/// The names of all instructions that check_tensor_cores() knows.
std::vector<std::string_view> tensor_core_instruction_names();

/// Compares every instruction of the current device with the row of its unit, on 20 families of
/// operands: random, and made to tell parameters apart. If an instruction differs, searches for
/// rules that would match.
///
/// @throws unsupported as current_tensor_core_gpu() does, or if the options leave nothing to check
/// @throws invalid_argument for an unknown instruction name, a number of cases out of range or a
///   `keep` out of range
/// @throws cuda_error if the device fails
std::vector<tensor_core_finding> check_tensor_cores(const tensor_core_check_options& options = {});

/// Compares recorded results with the rows of their units, as check_tensor_cores() does. Uses the
/// options unit, instruction, fit and on_result.
///
/// @throws invalid_argument for a result of an instruction that its unit does not have
std::vector<tensor_core_finding> check_tensor_core_results(
    std::span<const tensor_core_result> results, const tensor_core_check_options& options = {});

}  // namespace samebits
