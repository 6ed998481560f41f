// Stores the codes of a 128 x 128 block tile transposed, through shared memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cuda/quantize/tiles/tile_codes.cuh"

namespace samebits::cuda {

/// Shared memory: the codes of 128 columns, each in 16 vectors of 8 rows.
///
/// vector[c][(r / 8) ^ (c / 8)] = codes of rows r .. r + 7 of column c, r a multiple of 8
///
/// The exclusive or swizzles the vectors: neither writes nor reads have bank conflicts.
struct transposed_codes {
  static constexpr int side = 128;
  alignas(16) uint2 vector[side][side / 8];
};

/// Transposes 4 x 4 bytes: word i of the result holds byte i of the four words.
__device__ __forceinline__ void transpose_bytes(std::uint32_t (&w)[4]) {
  const std::uint32_t a = __byte_perm(w[0], w[1], 0x5140), b = __byte_perm(w[2], w[3], 0x5140);
  const std::uint32_t c = __byte_perm(w[0], w[1], 0x7362), d = __byte_perm(w[2], w[3], 0x7362);
  w[0] = __byte_perm(a, b, 0x5410), w[1] = __byte_perm(a, b, 0x7632);
  w[2] = __byte_perm(c, d, 0x5410), w[3] = __byte_perm(c, d, 0x7632);
}

/// Stores the block tile transposed. Each thread brings the codes of 8 rows, 8 * line onwards, and
/// 8 columns, 8 * lane onwards. All threads of the block must call.
__device__ __forceinline__ void store_transposed(const tile_task& t, transposed_codes& shared,
                                                 const uint2 (&codes)[8], unsigned lane,
                                                 unsigned line, std::uint64_t first_row,
                                                 std::uint32_t first_col) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    std::uint32_t upper[4], lower[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      upper[i] = half == 0 ? codes[i].x : codes[i].y;
      lower[i] = half == 0 ? codes[4 + i].x : codes[4 + i].y;
    }
    transpose_bytes(upper);
    transpose_bytes(lower);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      shared.vector[lane * 8 + half * 4 + i][line ^ lane] = make_uint2(upper[i], lower[i]);
    }
  }
  __syncthreads();
  // Eight threads write the 128 codes of one column, 16 bytes each: two neighbouring vectors. The
  // two vectors are swapped where col / 8 is odd.
  constexpr unsigned rows_at_once = block_threads / 8;
  const unsigned pair = threadIdx.x % 8 * 2, first = threadIdx.x / 8;
  const std::uint64_t row = first_row + pair * vector_length;
  if (row >= t.rows) return;
  const bool whole = t.aligned_transposed && row + 2 * vector_length <= t.rows;
  const std::uint64_t step = rows_at_once * t.codes_transposed.row_bytes;
  std::byte* to = t.codes_transposed.at(first_col + first, 0) + row;
#pragma unroll
  for (unsigned i = 0; i < transposed_codes::side; i += rows_at_once, to += step) {
    const unsigned col = i + first;
    if (first_col + col >= t.cols) return;
    const unsigned slot = col / vector_length;  // the swizzle of the column
    const uint4 two = *reinterpret_cast<const uint4*>(&shared.vector[col][(pair ^ slot) & ~1u]);
    const bool swapped = (slot & 1) != 0;
    const uint2 upper = swapped ? make_uint2(two.z, two.w) : make_uint2(two.x, two.y);
    const uint2 lower = swapped ? make_uint2(two.x, two.y) : make_uint2(two.z, two.w);
    if (whole) {
      *reinterpret_cast<uint4*>(to) = make_uint4(upper.x, upper.y, lower.x, lower.y);
    } else {
      store_codes<access::elements>(to, t.rows - row, upper);
      if (row + vector_length < t.rows) {
        store_codes<access::elements>(to + vector_length, t.rows - row - vector_length, lower);
      }
    }
  }
}

}  // namespace samebits::cuda
