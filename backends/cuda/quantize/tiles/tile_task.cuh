// tile_task: the launch parameters of the kernels that quantize matrices with contiguous rows, and
// the loads of vectors of 8 elements.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cuda/common/cells.cuh"
#include "backends/cuda/common/codes.cuh"
#include "backends/cuda/common/launch.cuh"
#include "backends/cuda/convert/convert_ops.cuh"
#include "backends/cuda/instructions/halves.cuh"
#include "backends/cuda/quantize/tuning.hpp"
#include "numerics/quantize/scale.hpp"
#include "numerics/quantize/tile.hpp"

namespace samebits::cuda {

using numerics::tile_amax;
using numerics::tile_scale;

/// Elements of one vector: 8 neighbours in a row, 16 bytes of a 16-bit format.
inline constexpr int vector_length = 8;

/// Launch parameters of one quantization of a matrix with contiguous rows. The matrix is cut into
/// block tiles, the elements that one block holds in registers; a block tile contains whole tiles, the
/// elements that share one scale. An output without data is not wanted.
struct tile_task {
  cells in, codes, codes_transposed, scales, scales_transposed;
  cells inverse_scales;  ///< inverse scales given by the caller, or null
  std::uint64_t rows;
  std::uint32_t cols;
  std::uint32_t col_blocks;  ///< block tiles along a row of the matrix
  int log2_lanes;            ///< log2 of the threads of a block along a row
  int tile_rows, tile_cols;  ///< log2 of the tile size
  bool aligned;              ///< input rows start at 16 bytes and code rows at 8, cols % 8 == 0
  bool aligned_transposed;   ///< rows of transposed codes start at 16 bytes
  bool by_definition;        ///< round every element by the definition: defined_cast
  bool saturates;            ///< overflow::saturate: Inf becomes max finite
  bool byte_scales;          ///< scales are e8m0; else fp32
  numerics::scale_settings scale;
  cast_rule cast;
  random_source random;
  std::uint64_t index, pitch;
  const std::uint32_t* skip;

  /// Random index of an element (contract §3).
  __device__ __forceinline__ std::uint64_t index_of(std::uint64_t row, std::uint32_t col) const {
    return index + row * pitch + col;
  }
};

template <format_id From>
using vector8 = packed<spec_of(From).storage_bits, vector_length>;

/// How a kernel loads and stores vectors.
enum class access {
  vectors,   ///< tile_task::aligned: one access per vector
  elements,  ///< any alignment: one access per element
};

/// The code of input element (row, col).
template <format_id From>
__device__ __forceinline__ std::uint32_t load_element(const tile_task& t, std::uint64_t row,
                                                      std::uint32_t col) {
  constexpr int bytes = spec_of(From).storage_bits / 8;
  return static_cast<std::uint32_t>(load_code(t.in.at(row, 0) + std::uint64_t{col} * bytes, bytes));
}

/// Loads vectors of 8 elements from `Rows` rows below one another, the first at (row, col). The
/// first `count` rows lie in the matrix. Elements outside the matrix are zeros, which change no
/// amax.
template <format_id From, access Access, int Rows>
__device__ __forceinline__ void load_vectors(const tile_task& t, std::uint64_t row,
                                             std::uint32_t col, int count,
                                             vector8<From> (&x)[Rows]) {
  constexpr int bytes = spec_of(From).storage_bits / 8;
  const std::byte* from = t.in.at(row, 0) + std::uint64_t{col} * bytes;
#pragma unroll
  for (int i = 0; i < Rows; ++i, from += t.in.row_bytes) {
    x[i] = {};
    if (i >= count) continue;
    if constexpr (Access == access::vectors) {
      x[i] = vector8<From>::load(from);
    } else {
#pragma unroll
      for (int k = 0; k < vector_length; ++k) {
        if (col + k < t.cols) {
          x[i].set(k, static_cast<std::uint32_t>(load_code(from + k * bytes, bytes)));
        }
      }
    }
  }
}

/// Element i of a vector as binary32. A NaN may keep its payload: all later steps treat every NaN
/// alike.
template <format_id From>
__device__ __forceinline__ float element(const vector8<From>& x, int i) {
  return __uint_as_float(widen<From>(x.code(i)));
}

}  // namespace samebits::cuda
