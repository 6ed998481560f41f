// Segments: splits a range of elements into segments of one row each.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/dispatch/element.hpp"

namespace samebits::backends {

/// A segment of one row: consecutive elements.
struct row_segment {
  const std::byte* in;
  std::byte* out;
  std::int64_t in_step;   ///< bytes from one element to the next
  std::int64_t out_step;  ///< bytes from one element to the next
  std::int64_t count;
  std::uint64_t index;  ///< index of the first element, for its random bits (contract §3)
};

/// Calls f(row_segment), in order, for the segment of each row that the range touches.
template <class Function>
void for_each_segment(const convert_call& call, element_range range, const Function& f) {
  const std::int64_t in_step = call.in.col_stride * storage_bytes(call.in.format);
  const std::int64_t out_step = call.out.col_stride * storage_bytes(call.out.format);
  for_each_row_part(
      call.in.cols, range, [&](std::int64_t row, std::int64_t col, std::int64_t count) {
        f(row_segment{element_at(call.in, row, col), element_at(call.out, row, col), in_step,
                      out_step, count, random_index(call.random, call.pitch, row, col)});
      });
}

}  // namespace samebits::backends
