// Quantization chunk by chunk, by known scales: codes to any outputs, and the statistics of each
// chunk. Compiled once per instruction set, under the rules of quantize_kernel.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/simd/quantize/quantize_kernel.hpp"
#include "backends/simd/quantize/statistics_kernel.hpp"
#include "backends/simd/simd.hpp"

namespace samebits::simd {

/// One chunk in contiguous memory.
struct chunk_buffers {
  static constexpr std::int64_t padding = 64;  ///< zeros after the last factor: a cast_unit or more
  alignas(64) std::uint32_t factors[numerics::chunk_elements + padding];
  alignas(64) std::uint32_t scales[numerics::chunk_elements + padding];
  alignas(64) std::byte codes[numerics::chunk_elements];
  alignas(64) std::byte in[numerics::chunk_elements * 4];
  chunk_pairs pairs;
};

/// Writes the factor and the dequantization scale of each element of a row segment.
template <class Isa>
void expand_scales(const backends::quantize_call& call, const numerics::tile_scale* scales,
                   std::int64_t row, std::int64_t col, std::int64_t count, std::uint32_t* factors,
                   std::uint32_t* dequantization) {
  using word = typename Isa::word;
  const backends::tile_grid& g = call.grid;
  const numerics::tile_scale* tile = scales + row / g.tile_rows * g.cols + col / g.tile_cols;
  std::int64_t left = g.tile_cols - col % g.tile_cols;  // elements of the first tile
  for (std::int64_t i = 0; i < count; left = g.tile_cols, ++tile) {
    const std::int64_t end = smaller(count, i + left);
    const word factor = tile->factor;
    const word scale = numerics::full_scale<hardware<Isa>>(call.scale.rule, call.scale.tensor,
                                                           word(tile->dequantization_scale));
    for (; i + word::count <= end; i += word::count) {
      store<Isa>(factors + i, factor);
      store<Isa>(dequantization + i, scale);
    }
    for (; i < end; ++i) {
      factors[i] = tile->factor;
      dequantization[i] = Isa::largest(scale);  // all lanes are equal
    }
  }
}

/// The chunks of one call.
template <class Isa>
struct chunk_pass {
  const backends::quantize_call& call;
  const backends::chunk_task& task;
  const row_cast<Isa>& cast;
  chunk_buffers& buffers;

  [[nodiscard]] const std::byte* in(std::int64_t row, std::int64_t col) const {
    return static_cast<const std::byte*>(call.in.data) +
           (row * call.in.row_stride + col) * cast.in_bytes;
  }
  static std::byte* code_at(const matrix_view& v, std::int64_t row, std::int64_t col) {
    return static_cast<std::byte*>(v.data) + row * v.row_stride + col * v.col_stride;
  }

  /// Quantizes elements [first, first + count), and returns them with their codes.
  [[nodiscard]] quantized_chunk run(std::int64_t first, std::int64_t count) const {
    const matrix_view& codes = call.outputs.codes;
    const matrix_view& transposed = call.outputs.codes_transposed;
    const bool one_row = first % call.in.cols + count <= call.in.cols;
    const bool in_place = one_row || call.in.row_stride == call.in.cols;
    const bool direct = codes.data != nullptr && (codes.col_stride == 1 || codes.cols <= 1) &&
                        (one_row || codes.row_stride == codes.cols);
    const std::int64_t first_row = first / call.in.cols;
    const std::int64_t first_col = first % call.in.cols;
    std::byte* const to = direct ? code_at(codes, first_row, first_col) : buffers.codes;
    backends::for_each_row_part(
        call.in.cols, {first, first + count},
        [&](std::int64_t row, std::int64_t col, std::int64_t n) {
          const std::int64_t at = row * call.in.cols + col - first;
          const std::byte* const from = in(row, col);
          expand_scales<Isa>(call, task.scales, row, col, n, buffers.factors + at,
                             buffers.scales + at);
          const std::uint64_t index = backends::random_index(call.random, call.pitch, row, col);
          cast.row(from, to + at, n, {buffers.factors + at, 0, true, false}, index);
          if (!in_place) {
            __builtin_memcpy(buffers.in + at * cast.in_bytes, from,
                             static_cast<std::size_t>(n * cast.in_bytes));
          }
          if (!direct && codes.data != nullptr) {
            copy_codes<Isa>(code_at(codes, row, col), codes.col_stride, to + at, 1, 1, n);
          }
          if (transposed.data != nullptr) {
            copy_codes<Isa>(code_at(transposed, col, row), transposed.row_stride, to + at, 1, 1, n);
          }
        });
    for (std::int64_t i = count; i < count + chunk_buffers::padding; ++i) {
      buffers.factors[i] = buffers.scales[i] = 0;
    }
    return {in_place ? in(first_row, first_col) : buffers.in,
            to,
            buffers.factors,
            buffers.scales,
            count,
            cast.terms.divide,
            task.overflow_start};
  }
};

/// The statistics of a quantized chunk. `Isa` is the instruction set's partial_sums_isa.
template <class Isa>
backends::quantize_chunk_statistics statistics_of(const backends::quantize_call& call,
                                                  const quantized_chunk& chunk,
                                                  chunk_pairs& pairs) {
  using lanes = typename Isa::lanes_isa;
  backends::quantize_chunk_statistics statistics;
  statistics.elements = static_cast<std::uint64_t>(chunk.count);
  backends::visit_quantization<true>(call.in.format, call.to, [&]<format_id From, format_id To>() {
    statistics.counts =
        count_elements<lanes, backends::fixed_format<From>, backends::fixed_format<To>>(chunk,
                                                                                        pairs);
  });
  sum_squares<Isa>(pairs, chunk.count, statistics.signal, statistics.noise);
  return statistics;
}

/// quantize_kernel::chunks.
template <class Isa>
void quantize_chunks(const backends::quantize_call& call, const backends::chunk_task& task,
                     backends::element_range chunks) {
  using lanes = typename Isa::lanes_isa;
  cast_random<lanes> random(call.random);
  const std::int64_t bytes = spec_of(call.in.format).storage_bits / 8;
  const bool divide = call.scale.rule == scale_rule::div;
  const row_cast<lanes> cast{
      cast_kernel_of<lanes>(call), {call.cast, divide}, bytes, false, random};
  chunk_buffers buffers;
  const chunk_pass<lanes> pass{call, task, cast, buffers};
  const std::int64_t elements = call.in.rows * call.in.cols;
  for (std::int64_t i = chunks.begin; i < chunks.end; ++i) {
    const std::int64_t first = i * numerics::chunk_elements;
    const quantized_chunk chunk =
        pass.run(first, smaller(numerics::chunk_elements, elements - first));
    if (task.statistics != nullptr) {
      task.statistics[i] = statistics_of<Isa>(call, chunk, buffers.pairs);
    }
  }
}

}  // namespace samebits::simd
