// Transposed codes: a block's 128 x 128 codes turn through shared memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cuda/quantize/tiles/patch.cuh"

namespace samebits::cuda {

/// Codes of 128 columns by 16 strips of 8 rows. A strip lies at the place of its rows, exclusive-or
/// the column's strip, so that neither writing nor reading meets a bank twice.
struct transposed_codes {
  static constexpr int side = 128;
  alignas(16) uint2 strip[side][side / 8];
};

/// 4 x 4 bytes: word i of the result holds byte i of the four words.
__device__ __forceinline__ void transpose_bytes(std::uint32_t (&w)[4]) {
  const std::uint32_t a = __byte_perm(w[0], w[1], 0x5140), b = __byte_perm(w[2], w[3], 0x5140);
  const std::uint32_t c = __byte_perm(w[0], w[1], 0x7362), d = __byte_perm(w[2], w[3], 0x7362);
  w[0] = __byte_perm(a, b, 0x5410), w[1] = __byte_perm(a, b, 0x7632);
  w[2] = __byte_perm(c, d, 0x5410), w[3] = __byte_perm(c, d, 0x7632);
}

/// Each thread brings 8 rows of 8 codes, its rows being the `line`-th eight and its columns the
/// `lane`-th; all threads of the block come here.
__device__ __forceinline__ void store_transposed(const patch_task& t, transposed_codes& shared,
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
      shared.strip[lane * 8 + half * 4 + i][line ^ lane] = make_uint2(upper[i], lower[i]);
    }
  }
  __syncthreads();
  // Eight threads write a row of 128 codes, 16 each: two strips, which lie side by side, the other
  // way round where the column's strip is odd.
  constexpr unsigned rows_at_once = block_threads / 8;
  const unsigned pair = threadIdx.x % 8 * 2, first = threadIdx.x / 8;
  const std::uint64_t row = first_row + pair * strip;
  if (row >= t.rows) return;
  const bool whole = t.aligned_transposed && row + 2 * strip <= t.rows;
  const std::uint64_t step = rows_at_once * t.transposed_row_bytes;
  std::byte* to =
      t.codes_transposed + std::uint64_t{first_col + first} * t.transposed_row_bytes + row;
#pragma unroll
  for (unsigned i = 0; i < transposed_codes::side; i += rows_at_once, to += step) {
    const unsigned col = i + first;
    if (first_col + col >= t.cols) return;
    const unsigned place = col / strip;  // of its strip
    const uint4 two = *reinterpret_cast<const uint4*>(&shared.strip[col][(pair ^ place) & ~1u]);
    const bool swapped = (place & 1) != 0;
    const uint2 upper = swapped ? make_uint2(two.z, two.w) : make_uint2(two.x, two.y);
    const uint2 lower = swapped ? make_uint2(two.x, two.y) : make_uint2(two.z, two.w);
    if (whole) {
      *reinterpret_cast<uint4*>(to) = make_uint4(upper.x, upper.y, lower.x, lower.y);
    } else {
      store_codes<access::elements>(to, t.rows - row, upper);
      if (row + strip < t.rows) {
        store_codes<access::elements>(to + strip, t.rows - row - strip, lower);
      }
    }
  }
}

}  // namespace samebits::cuda
