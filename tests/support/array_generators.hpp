// Generators of array conversions: shapes, strides, random streams and threads.
#pragma once

#include <rapidcheck.h>

#include <cstdint>
#include <iosfwd>
#include <vector>

#include "samebits/core/format.hpp"
#include "samebits/core/rounding.hpp"
#include "support/generators.hpp"

namespace samebits::support {

/// A matrix in memory: shape, strides in elements, and bytes before the first element.
struct array_layout {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t row_stride = 0;
  std::int64_t col_stride = 1;
  std::int64_t misalignment = 0;  ///< bytes, 0..7

  /// Elements from the first to behind the last; 0 if the shape is empty.
  [[nodiscard]] std::int64_t span() const;

  friend constexpr bool operator==(const array_layout&, const array_layout&) = default;
};

enum class array_side : std::uint8_t { read, written };

/// Strides of a shape: rows or columns next to each other, with gaps or without; an array that is
/// read may repeat a row or a column instead.
array_layout draw_layout(std::int64_t rows, std::int64_t cols, array_side which,
                         const word_source& next);

/// One array conversion: a shape with a layout on both sides, options and threads.
struct array_case {
  format_id from = format_id::fp32;
  format_id to = format_id::fp32;
  array_layout in;
  array_layout out;
  cast_rule rule;
  random_stream random;
  int threads = 1;
  std::uint64_t content = 0;  ///< seed of the codes
};

/// Cases of at most about 70000 elements: any number of rows and columns incl. 0, dense, padded,
/// transposed, with repeated input rows and columns (stride 0), unaligned, on 1 to 8 threads.
rc::Gen<array_case> array_cases();

/// Source codes for the elements of an array case, in memory order.
std::vector<std::uint64_t> content_of(const array_case& c);

std::ostream& operator<<(std::ostream& out, const array_case& c);

}  // namespace samebits::support
