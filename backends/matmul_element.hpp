// What every multiplier does with one element: its scales, C, and the rounding into D.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "backends/matmul.hpp"
#include "numerics/binary32.hpp"
#include "numerics/decode.hpp"
#include "numerics/dot.hpp"
#include "numerics/encode.hpp"
#include "samebits/format.hpp"

namespace samebits::backends {

/// The code of element (r, c); not fp64.
inline std::uint32_t code_at(const const_matrix_view& v, std::int64_t r, std::int64_t c) {
  const int bytes = storage_bytes(v.format);
  std::uint32_t code = 0;
  std::memcpy(&code,
              static_cast<const std::byte*>(v.data) + (r * v.row_stride + c * v.col_stride) * bytes,
              static_cast<std::size_t>(bytes));
  return code;
}

inline void store_at(const matrix_view& v, std::int64_t r, std::int64_t c, std::uint64_t code) {
  const int bytes = storage_bytes(v.format);
  std::memcpy(static_cast<std::byte*>(v.data) + (r * v.row_stride + c * v.col_stride) * bytes,
              &code, static_cast<std::size_t>(bytes));
}

/// The number of element (r, c) as binary32 bits; not of fp64.
inline std::uint32_t binary32_at(const const_matrix_view& v, std::int64_t r, std::int64_t c) {
  return numerics::decode<std::uint32_t>(spec_of(v.format), code_at(v, r, c));
}

/// The scale of the tile of element (r, c) of the operand.
inline std::uint32_t scale_at(const scale_source& s, std::int64_t r, std::int64_t c) {
  if (s.values.data == nullptr) return numerics::binary32::one;
  return binary32_at(s.values, r / s.grid.tile_rows, c / s.grid.tile_cols);
}

/// Whether the whole sum is scaled at the end.
inline bool is_scaled_at_end(const matmul_call& call) {
  return !call.scaled_along_k &&
         (call.a_scales.values.data != nullptr || call.b_scales.values.data != nullptr);
}

inline bool has_first_addend(const matmul_call& call) {
  return call.c.data != nullptr && call.c_enters == addend::first;
}
inline bool has_last_addend(const matmul_call& call) {
  return call.c.data != nullptr && call.c_enters == addend::last;
}

/// From the sum in binary32 to D.
inline void finish_element(const matmul_call& call, std::int64_t i, std::int64_t j,
                           std::uint32_t sum) {
  if (is_scaled_at_end(call)) {
    sum = numerics::scaled(call.order, sum, scale_at(call.a_scales, i, 0),
                           scale_at(call.b_scales, 0, j));
  }
  if (has_last_addend(call)) sum = numerics::binary32::add(sum, binary32_at(call.c, i, j));
  store_at(call.d, i, j,
           numerics::encode<std::uint32_t>(spec_of(call.d.format), cast_rule{}, sum, 0).code);
}

}  // namespace samebits::backends
