// Search for the parameters of an instruction's rule that reproduce what a GPU returned.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tensor_core_probe/parameters.hpp"
#include "tensor_core_probe/result.hpp"

namespace samebits::backends::tensor_cores {

/// A rule, and how many results it reproduces.
struct tensor_fit {
  accumulate_rule rule;
  std::uint64_t explained;
};

/// The result of a search.
struct fit_result {
  std::uint64_t searched;              ///< results
  std::uint64_t row_explains;          ///< of them, those that the row reproduces
  std::uint64_t tried;                 ///< rules tested
  std::vector<accumulate_rule> exact;  ///< reproduce every result; nearest to the row first
  /// The nearest exact rule. If there is none, at most 3 of the best found, best first.
  std::vector<tensor_fit> best;
  std::string open;  ///< open_parameters() of the exact rules
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
/// A combination is dropped at the first result that refutes it. If all are refuted, the
/// search improves the rule of every row one parameter at a time.
/// @param row  the rule of the instruction's row
/// @param seen  results of one instruction
fit_result fit(const accumulate_rule& row, std::span<const tensor_core_result> seen);

}  // namespace samebits::backends::tensor_cores
