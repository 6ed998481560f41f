// Tensor core check: this machine's GPU, or results of one, against the rows of tensor_unit.hpp.
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

/// What subnormal operands of an instruction are taken as.
enum class subnormal_operands : std::uint8_t {
  as_they_are,  ///< significands below 1 with the least exponent of their format
  as_fp16,      ///< the same of fp16, of operands that are normal there
  normalized,
};

/// One setting of every parameter of the model, of rows and beyond.
struct tensor_setting {
  sum_place place;
  product_order order;
  subnormal_operands subnormals;
  int group;                 ///< most products of a step
  int alignment_bits;        ///< kept below the largest exponent
  rounding cut;              ///< of terms, to the last of these bits
  int fraction_bits;         ///< of a step's sum in an fp32 result; 10 in fp16
  rounding round;            ///< of that sum
  std::optional<int> floor;  ///< least E; nothing: none

  friend bool operator==(const tensor_setting&, const tensor_setting&) = default;
};

/// "group 8, kept 24 toward_zero, bits 23 toward_zero, floor -132, sum first_step, ..."
std::string text_of(const tensor_setting& setting);

/// What one instruction of a GPU returned: D = A * B + C of a row and a column.
struct tensor_core_result {
  tensor_unit unit;
  format_id a;
  format_id b;
  format_id result;
  std::vector<std::uint32_t> a_codes;  ///< as many as the instruction has products
  std::vector<std::uint32_t> b_codes;  ///< the same
  std::uint32_t c;                     ///< a code of `result`
  std::uint32_t d;                     ///< the same
};

/// One line without its end: unit, formats of A, B and the result, products; c, d, then codes of A
/// and B in turns, hexadecimal.
std::string text_of(const tensor_core_result& result);

/// The inverse; a line with fewer codes than products means zeros. Nothing if it is no such line,
/// or the unit has no such operands.
std::optional<tensor_core_result> parse_tensor_core_result(std::string_view line);

/// How a setting does on the results that were searched with.
struct tensor_fit {
  tensor_setting setting;
  std::uint64_t explained;  ///< results that it reproduces
};

/// One instruction, compared.
struct tensor_core_finding {
  std::string instruction;  ///< "wgmma_e4m3", "mma_f16_k16"
  tensor_unit unit;         ///< whose row was the judge
  evidence known;           ///< of that row for this kind of result
  /// That hardware or published results stand behind this row on this very GPU; else the row is
  /// the nearest that there is.
  bool confirmed;
  std::uint64_t compared;        ///< results
  std::uint64_t differed;        ///< of them
  std::string first_difference;  ///< family, codes, result, expected one; empty if none differed
  std::vector<tensor_core_result> kept;  ///< as many of each family as options.keep says

  // What would match, searched where results differ and options.fit says so.
  std::uint64_t searched;      ///< results that the search looked at
  std::uint64_t row_explains;  ///< of them
  std::uint64_t tried;         ///< settings
  std::uint64_t exact;         ///< settings that explain every result
  /// The exact one that is nearest to the row; where there is none the best that were found, best
  /// first.
  std::vector<tensor_fit> fits;
  /// Parameters that the results leave open among the exact settings, with their values:
  /// "floor none, -137 to -126"; empty if nothing.
  std::string open;
};

struct tensor_core_check_options {
  std::optional<tensor_unit> unit = {};  ///< the only one
  std::string_view instruction = {};     ///< the only one; see tensor_core_instruction_names()
  /// Of each family and instruction, >= 1; rounded up to whole tiles of 16 (wgmma: 64). Its row
  /// meets the columns of up to 16 tiles: from 16 tiles on a case makes 128 results.
  std::uint64_t cases = 8192;
  std::uint64_t seed = 0;
  int keep = 0;     ///< results of each family in a finding, 0 to 8
  bool fit = true;  ///< search where results differ
  /// Called as soon as each finding is complete, in the order of the returned ones.
  std::function<void(const tensor_core_finding&)> on_result = {};
};

/// The current CUDA device.
struct tensor_core_gpu {
  std::string name;
  int major;  ///< compute capability
  int minor;
};

/// Throws unsupported where there is no GPU or the program is linked without
/// samebits::tensor_cores.
tensor_core_gpu current_tensor_core_gpu();

/// Every instruction that check_tensor_cores() knows.
std::vector<std::string_view> tensor_core_instruction_names();

/// Compares every instruction that the current device has with the row of its unit: 20 families of
/// operands, random and made to tell parameters apart. Tells which settings of the parameters
/// would match where one differs.
///
/// Throws unsupported as current_tensor_core_gpu() does, or where nothing is left to check;
/// invalid_argument for a name that is none, no cases or a `keep` out of range; cuda_error if
/// the device fails.
std::vector<tensor_core_finding> check_tensor_cores(const tensor_core_check_options& options = {});

/// The same of results that came from elsewhere, each by the row of its unit. Of the options unit,
/// instruction, fit and on_result count.
std::vector<tensor_core_finding> check_tensor_core_results(
    std::span<const tensor_core_result> results, const tensor_core_check_options& options = {});

}  // namespace samebits
