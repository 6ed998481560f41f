// Findings of the tensor core check: creation, text, and the results of a parameter search.
#pragma once

#include "tensor_core_probe/check.hpp"
#include "tensor_core_probe/settings/fit.hpp"
#include "tensor_core_probe/settings/setting.hpp"

namespace samebits::backends::tensor_cores {

/// A finding without comparisons. listed: the reference row was stated for this exact GPU.
tensor_core_finding new_finding(std::string_view instruction, const tensor_arithmetic& row,
                                format_id result, bool listed);

/// A case and the result d that the GPU returned, with the formats of the instruction.
tensor_core_result result_of_case(tensor_unit unit, const shape& s, const case_codes& x,
                                  std::uint32_t d);

/// "3F800000"
std::string hexadecimal(std::uint32_t code);

/// "edge: got 3F800000, expected 3F7FFFFF: hopper-wgmma ...", the line that describes the case.
std::string difference_text(std::string_view of, std::uint32_t expected,
                            const tensor_core_result& got);

/// Searches for the settings that reproduce the results, and adds them to the finding.
void add_fit(tensor_core_finding& finding, const shape& s, const numerics::accumulate_rule& rule,
             std::span<const observation> seen);

}  // namespace samebits::backends::tensor_cores
