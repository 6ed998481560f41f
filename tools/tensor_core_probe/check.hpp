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

#include "samebits/core/format.hpp"
#include "samebits/core/rounding.hpp"
#include "samebits/core/tensor_unit.hpp"

namespace samebits {

/// How an instruction treats subnormal operands.
enum class subnormal_operands : std::uint8_t {
  as_they_are,  ///< significands below 1 with the minimum exponent of their format
  as_fp16,      ///< normalized down to the minimum exponent of fp16
  normalized,
};

/// One value for every parameter of the model. Not every setting is a row of tensor_unit.hpp.
struct tensor_setting {
  sum_place place;
  product_order order;
  subnormal_operands subnormals;
  int group;                    ///< maximum number of products of a step
  int alignment_bits;           ///< bits kept below the largest exponent
  samebits::rounding cut;       ///< rounding of terms to the last of these bits
  int fraction_bits;            ///< mantissa bits of a step's sum for fp32 results; 10 for fp16
  samebits::rounding rounding;  ///< rounding of the step's sum
  std::optional<int> floor;     ///< minimum exponent of a step, or none

  friend bool operator==(const tensor_setting&, const tensor_setting&) = default;
};

/// Text of a setting: "group 8, kept 24 toward_zero, bits 23 toward_zero, floor -132, sum in the
/// first step, ..."
std::string text_of(const tensor_setting& setting);

/// One result of an instruction on a GPU: D = A * B + C for a row of A and a column of B.
struct tensor_core_result {
  tensor_unit unit;
  format_id a;
  format_id b;
  format_id result;
  std::vector<std::uint32_t> a_codes;  ///< as many as the instruction has products
  std::vector<std::uint32_t> b_codes;  ///< as many as a_codes
  std::uint32_t c;                     ///< a code of format `result`
  std::uint32_t d;                     ///< a code of format `result`
};

/// Text of a result, one line without its end: unit; formats of A, B and the result; products; then
/// in hexadecimal c, d, and the codes of A and B in turns.
std::string text_of(const tensor_core_result& result);

/// Parses a line of text_of(result).
///
/// @returns the result; nothing if the line is malformed or the unit has no such instruction
/// @note A line may hold fewer codes than products: the missing codes are zeros.
std::optional<tensor_core_result> parse_tensor_core_result(std::string_view line);

/// How many results of a search a setting reproduces.
struct tensor_fit {
  tensor_setting setting;
  std::uint64_t explained;  ///< results that the setting reproduces
};

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

  // Settings that would match. Searched only if results differ and options.fit is set.
  std::uint64_t searched;      ///< results used by the search
  std::uint64_t row_explains;  ///< of them, results that the row reproduces
  std::uint64_t tried;         ///< settings tested
  std::uint64_t exact;         ///< settings that reproduce every result
  /// The exact setting nearest to the row. If no setting is exact, the best settings found, best
  /// first.
  std::vector<tensor_fit> fits;
  /// Parameters whose values differ among the exact settings, with these values: "floor none, -137
  /// to -126". Empty if there are none.
  std::string open;
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
  bool fit = true;  ///< search for matching settings if results differ
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
/// parameter settings that would match.
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
