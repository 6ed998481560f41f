// Statistics of the elements of a tensor, as `tensor`, `report` and `compare` read them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>

#include "fpinspect/quantize/sqnr.hpp"
#include "fpinspect/tensors/source/selection.hpp"
#include "samebits/backend.hpp"
#include "samebits/cast_statistics.hpp"

namespace fpinspect {

/// Reads the elements as often as the request needs; elements that the file holds in place are not
/// copied. The statistics do not depend on the executor, whose threads must be >= 1.
samebits::cast_statistics statistics_of(const shown_tensor& tensor,
                                        samebits::statistics_request request,
                                        const samebits::executor& where);

/// Whether the tensor is a matrix with elements, and with at most this many columns.
bool has_columns(const samebits::tensor_file::tensor_info& info, std::uint64_t most);

/// The ratio of a conversion that destroyed no element, else the reason why there is none.
sqnr sqnr_of(const samebits::cast_effect& effect, const samebits::cast_statistics& stats);

/// Finite non-zero elements of all tensors by floor(log2(|x|)).
std::map<int, std::uint64_t> exponents_of(std::span<const samebits::cast_statistics> stats);

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

/// The range of amaxes, of which -1 stands for a channel without a finite element; nothing without
/// channels.
std::optional<channel_range> range_of(std::span<const double> amaxes);

}  // namespace fpinspect
