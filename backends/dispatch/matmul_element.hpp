// Per-element steps shared by all matrix multiplications: scales, C and the rounding into D.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "backends/dispatch/calls/matmul.hpp"
#include "backends/dispatch/element.hpp"
#include "numerics/arithmetic/binary32.hpp"
#include "numerics/bits/decode.hpp"
#include "numerics/bits/encode.hpp"
#include "numerics/sums/dot.hpp"
#include "samebits/core/format.hpp"

namespace samebits::backends {

/// The code of element (r, c). Not for fp64.
inline std::uint32_t code_at(const const_matrix_view& v, std::int64_t r, std::int64_t c) {
  std::uint32_t code = 0;
  std::memcpy(&code, element_at(v, r, c), static_cast<std::size_t>(storage_bytes(v.format)));
  return code;
}

inline void store_at(const matrix_view& v, std::int64_t r, std::int64_t c, std::uint64_t code) {
  std::memcpy(element_at(v, r, c), &code, static_cast<std::size_t>(storage_bytes(v.format)));
}

/// The value of element (r, c) as binary32 bits. Not for fp64.
inline std::uint32_t binary32_at(const const_matrix_view& v, std::int64_t r, std::int64_t c) {
  return numerics::decode<std::uint32_t>(spec_of(v.format), code_at(v, r, c));
}

/// The scale of the tile that contains element (r, c) of the operand.
inline std::uint32_t scale_at(const scale_source& s, std::int64_t r, std::int64_t c) {
  if (s.values.data == nullptr) return numerics::binary32::one;
  return binary32_at(s.values, r / s.grid.tile_rows, c / s.grid.tile_cols);
}

/// Whether the complete sum is scaled once at the end.
inline bool is_scaled_at_end(const matmul_call& call) {
  return !call.scaled_along_k &&
         (call.a_scales.values.data != nullptr || call.b_scales.values.data != nullptr);
}

/// Whether C is the initial value of each sum.
inline bool has_first_addend(const matmul_call& call) {
  return call.c.data != nullptr && call.c_enters == addend::first;
}
/// Whether C is added after scaling.
inline bool has_last_addend(const matmul_call& call) {
  return call.c.data != nullptr && call.c_enters == addend::last;
}

/// Turns the binary32 sum of an element into its element of D.
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

/// The initial sum of an element: C if C is the first addend, else +0.
inline std::uint32_t start_of(const matmul_call& call, std::int64_t i, std::int64_t j) {
  return has_first_addend(call) ? code_at(call.c, i, j) : 0u;
}

/// The sum of an element over blocks along K. part(from, count) returns the binary32 sum of one
/// block.
template <class Part>
std::uint32_t sum_of_blocks(const matmul_call& call, std::int64_t i, std::int64_t j,
                            std::int64_t block, const Part& part) {
  std::uint32_t sum = start_of(call, i, j);
  const std::int64_t depth = call.a.cols;
  for (std::int64_t k = 0; k < depth; k += block) {
    const std::uint32_t p = part(k, std::min(block, depth - k));
    sum = call.scaled_along_k
              ? numerics::add_scaled(call.order, sum, p, scale_at(call.a_scales, i, k),
                                     scale_at(call.b_scales, k, j))
              : numerics::binary32::add(sum, p);
  }
  return sum;
}

/// The sum of an element under fp32_per_128. part(from, count) returns an exact dot product.
template <class Part>
std::uint32_t fp32_per_128_sum(const matmul_call& call, std::int64_t i, std::int64_t j,
                               const Part& part) {
  return sum_of_blocks(call, i, j, scale_block, [&](std::int64_t k, std::int64_t count) {
    return static_cast<std::uint32_t>(part(k, count).round(spec_of(format_id::fp32)));
  });
}

/// The element of D under `exact`. part(from, count) returns an exact dot product.
template <class Part>
void exact_element(const matmul_call& call, std::int64_t i, std::int64_t j, const Part& part) {
  numerics::exact_scaled_dot total;
  const std::int64_t depth = call.a.cols;
  const std::int64_t block =
      call.scaled_along_k ? call.exact_block : std::max<std::int64_t>(depth, 1);
  for (std::int64_t k = 0; k < depth; k += block) {
    numerics::add_scaled_part(total, part(k, std::min(block, depth - k)),
                              scale_at(call.a_scales, i, k), scale_at(call.b_scales, k, j));
  }
  if (call.c.data != nullptr) numerics::add_number(total, binary32_at(call.c, i, j));
  store_at(call.d, i, j, total.round(spec_of(call.d.format)));
}

}  // namespace samebits::backends
