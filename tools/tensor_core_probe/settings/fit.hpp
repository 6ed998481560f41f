// Search for the settings of an instruction's parameters that reproduce what a GPU returned.
#pragma once

#include "tensor_core_probe/cases.hpp"
#include "tensor_core_probe/check.hpp"
#include "tensor_core_probe/device.hpp"

namespace samebits::backends::tensor_cores {

/// One case and its result.
struct observation {
  case_codes x;
  std::uint32_t d;  ///< what the GPU returned
};

/// The result of a search.
struct fit_result {
  std::uint64_t tried;
  std::uint64_t row_explains;         ///< observations that the row reproduces
  std::vector<tensor_setting> exact;  ///< reproduce every observation; nearest to the row first
  std::vector<tensor_fit> best;       ///< if `exact` is empty: at most 3, best first
};

/// Searches every combination of
///
///   group            powers of two up to the instruction's products
///   alignment bits   8 to 32
///   cut              toward zero, to nearest even, downward
///   fraction bits    10 to 23 of fp32 results
///   round            toward zero, to nearest even
///   floor            none, and from the result's minimum exponent down to 11 below it
///   place of the sum, order of products, subnormal operands: all values of each
///
/// A combination is dropped at the first observation that refutes it. If all are refuted, the
/// search improves the settings of every row one parameter at a time.
fit_result fit(const shape& s, const tensor_setting& row, std::span<const observation> seen);

/// Text of the parameters in which settings differ, with their values: "floor none, -137 to -126;
/// sum in the first step, added last". Ends with "; not in every combination" if some combinations
/// of the values are missing.
std::string open_parameters(std::span<const tensor_setting> settings);

}  // namespace samebits::backends::tensor_cores
