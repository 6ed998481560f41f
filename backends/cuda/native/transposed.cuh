// Transposed codes: a block's 128 x 128 codes turn through shared memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cuda/native/patch.cuh"

namespace samebits::cuda {

/// Codes of 128 columns by 16 strips of 8 rows. A strip lies at the place of its rows, exclusive-or
/// the column's strip, so that neither writing nor reading meets a bank twice.
struct transposed_codes {
  static constexpr int side = 128;
  uint2 strip[side][side / 8];
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
  const std::uint64_t row = first_row + lane * 8;
  const bool whole = t.aligned_transposed && row + strip <= t.rows;
#pragma unroll
  for (unsigned i = 0; i < transposed_codes::side; i += 16) {
    const std::uint32_t col = first_col + i + line;
    if (col >= t.cols || row >= t.rows) continue;
    std::byte* const to = t.codes_transposed + std::uint64_t{col} * t.transposed_row_bytes + row;
    const uint2 turned = shared.strip[i + line][lane ^ (i + line) / 8];
    if (whole) {
      store_codes<access::strips>(to, strip, turned);
    } else {
      store_codes<access::elements>(to, t.rows - row, turned);
    }
  }
}

}  // namespace samebits::cuda
