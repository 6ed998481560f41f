// The distribution of a tensor's elements: moments, norms, percentiles and the amax of channels.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "fpinspect/tensors/source/source.hpp"
#include "tensor_file/tensor.hpp"

namespace fpinspect {

/// The amax of each row or column of a matrix.
struct channel_range {
  std::uint64_t channels = 0;
  std::uint64_t zero = 0;           ///< channels whose amax is 0
  std::uint64_t not_finite = 0;     ///< channels without a finite element
  double smallest = 0;              ///< non-zero amax; 0 if there is none
  double median = 0;                ///< the lower one of an even number of channels
  double largest = 0;               ///< the largest amax
  std::uint64_t largest_index = 0;  ///< the first channel that has it

  /// largest / smallest; nothing without a non-zero amax.
  [[nodiscard]] std::optional<double> spread() const;
};

/// The range of the amaxes of at least one channel; -1 stands for a channel without a finite element.
channel_range range_of(std::span<const double> amaxes);

/// The power of two by which elements are multiplied before they are added and squared: 0 if amax is
/// 0 or in [2^-500, 2^500), else the one that brings amax into [1, 2).
int sum_log2_for(double amax);

/// Statistics of the finite elements. Sums are in binary64, in the tree of contract §6 over the
/// elements in C order, times a power of two if squares could leave the range of binary64
/// (sum_log2_for()); elements that are not finite add +0.
struct distribution {
  std::uint64_t count = 0;
  std::uint64_t zeros = 0;
  std::uint64_t nan = 0;
  std::uint64_t inf = 0;
  std::optional<double> min;
  std::optional<double> max;
  std::optional<double> amax;
  std::optional<double> min_nonzero;     ///< smallest non-zero magnitude
  std::optional<double> mean;            ///< sum of x / finite elements
  std::optional<double> std;             ///< sqrt(sum of (x - mean)^2 / finite elements)
  double l1_norm = 0;                    ///< sum of |x|
  double l2_norm = 0;                    ///< sqrt(sum of x^2)
  std::vector<double> percentiles;       ///< in the order of `percentages`; empty without elements
  std::optional<channel_range> rows;     ///< of a matrix: leading dimensions merge into rows
  std::optional<channel_range> columns;  ///< of a matrix: the last dimension

  [[nodiscard]] std::uint64_t finite() const { return count - nan - inf; }
  /// log2(amax / min_nonzero).
  [[nodiscard]] std::optional<double> dynamic_range_log2() const;
};

/// Reads the elements in 2 to 5 passes. Rows and columns are missing for tensors of rank 0 and 1,
/// without elements, and with more than 2^22 rows or columns.
distribution distribution_of(const samebits::tensor_file::tensor_file& file,
                             const samebits::tensor_file::tensor_info& info,
                             const element_reading& how);

}  // namespace fpinspect
