// `fpinspect tensor --quick`: counts, extremes, mean and root mean square of each tensor, in one
// pass over the file.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fpinspect/output/output.hpp"
#include "fpinspect/output/terminal.hpp"
#include "fpinspect/tensors/meters/quick_meter.hpp"
#include "fpinspect/tensors/source/selection.hpp"
#include "fpinspect/verdict/gate/gate.hpp"
#include "samebits/backend.hpp"

namespace fpinspect {

/// Statistics of the finite elements of a tensor. Sums are in binary64, in the tree of contract §6
/// over the elements in C order; elements that are not finite add +0.
struct quick_statistics {
  std::uint64_t count = 0;
  quick_range range;
  quick_sums sums;   ///< of the elements times 2^sum_log2
  int sum_log2 = 0;  ///< not 0 if squares could leave the range of binary64 (sum_log2_for())

  [[nodiscard]] std::uint64_t finite() const { return count - range.nan - range.inf; }
  // Nothing without finite elements; min_nonzero: without non-zero ones.
  [[nodiscard]] std::optional<double> min() const;
  [[nodiscard]] std::optional<double> max() const;
  [[nodiscard]] std::optional<double> amax() const;
  [[nodiscard]] std::optional<double> min_nonzero() const;
  [[nodiscard]] std::optional<double> mean() const;
  /// sqrt(sum of x^2 / finite elements).
  [[nodiscard]] std::optional<double> root_mean_square() const;
  /// sqrt(sum of x^2).
  [[nodiscard]] double l2_norm() const;
};

/// Reads the elements once; those of fp64 a second time if sum_log2 is not 0.
/// @param where  threads >= 1; the result does not depend on their number
quick_statistics quick_statistics_of(const shown_tensor& tensor, const samebits::executor& where);

/// Writes a line for each tensor, or JSON.
/// @param names  of the tensors in text
/// @param conditions  on `nan` and `inf`
void write_quick_statistics(std::span<const shown_tensor> tensors,
                            std::span<const std::string> names, const std::string& heading,
                            gate& conditions, const samebits::executor& where, const terminal& term,
                            output& out);
void write_quick_statistics_json(std::span<const shown_tensor> tensors,
                                 std::span<const std::string> names, gate& conditions,
                                 const samebits::executor& where, output& out);

/// The conditions of --fail-if that --quick knows.
/// @throws usage_error  for any other condition
std::vector<condition> quick_conditions(const std::vector<std::string>& texts);

}  // namespace fpinspect
