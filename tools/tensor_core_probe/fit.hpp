// Fit: which settings of an instruction's parameters reproduce what a GPU returned.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tensor_core_probe/cases.hpp"
#include "tensor_core_probe/check.hpp"
#include "tensor_core_probe/device.hpp"

namespace samebits::backends::tensor_cores {

struct observation {
  case_codes x;
  std::uint32_t d;  ///< what the GPU returned
};

struct fit_result {
  std::uint64_t tried;
  std::uint64_t row_explains;         ///< observations
  std::vector<tensor_setting> exact;  ///< that explain every observation, nearest to the row first
  std::vector<tensor_fit> best;       ///< where there is none: best first, at most 3
};

/// Tries every combination of
///
///   group            powers of two up to the instruction's products
///   alignment bits   8 to 32
///   cut              toward zero, to nearest even, downward
///   fraction bits    10 to 23 of fp32 results
///   round            toward zero, to nearest even
///   floor            none, and from the result's least exponent down to 11 below it
///   place of the sum, order of products, subnormal operands: all
///
/// until an observation refutes it; where all are refuted, improves the settings of every row one
/// parameter at a time.
fit_result fit(const shape& s, const tensor_setting& row, std::span<const observation> seen);

/// "floor none, -137 to -126; sum in the first step, added last": parameters in which settings
/// differ, and their values; followed by "; not in every combination" where that is so.
std::string open_parameters(std::span<const tensor_setting> settings);

}  // namespace samebits::backends::tensor_cores
