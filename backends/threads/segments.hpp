// Segments: splits a range of elements into segments of one row each.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/dispatch/backend.hpp"

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
  const std::int64_t in_bytes = spec_of(call.in.format).storage_bits / 8;
  const std::int64_t out_bytes = spec_of(call.out.format).storage_bits / 8;
  std::int64_t row = range.begin / call.in.cols;
  std::int64_t col = range.begin % call.in.cols;
  for (std::int64_t left = range.end - range.begin; left > 0; ++row, col = 0) {
    const std::int64_t in_row = call.in.cols - col;
    const std::int64_t count = left < in_row ? left : in_row;
    left -= count;
    f(row_segment{static_cast<const std::byte*>(call.in.data) +
                      (row * call.in.row_stride + col * call.in.col_stride) * in_bytes,
                  static_cast<std::byte*>(call.out.data) +
                      (row * call.out.row_stride + col * call.out.col_stride) * out_bytes,
                  call.in.col_stride * in_bytes, call.out.col_stride * out_bytes, count,
                  call.random.offset + static_cast<std::uint64_t>(row) * call.pitch +
                      static_cast<std::uint64_t>(col)});
  }
}

}  // namespace samebits::backends
