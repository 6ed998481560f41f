// Generators of quantizations: shapes, tiles, options, layouts, and what the matrix holds.
#pragma once

#include <rapidcheck.h>

#include <cstdint>
#include <iosfwd>
#include <vector>

#include "samebits/quantize.hpp"
#include "support/array_generators.hpp"
#include "support/strided_buffer.hpp"

namespace samebits::support {

/// One quantization, with a layout for every view.
struct quantize_case {
  format_id from = format_id::fp32;
  format_id to = format_id::e4m3;
  quantize_options options;
  array_layout in;
  array_layout codes, scales, codes_transposed, scales_transposed;
  format_id scale_format = format_id::fp32;
  bool plain = false;  ///< every view dense, and aligned to 16 bytes
  int threads = 1;
  std::uint64_t content = 0;  ///< seed of the elements
};

/// Cases of at most some 70000 elements: any number of rows and columns incl. 0, tiles larger than
/// the matrix, every option; half of them plain, the others with views padded, transposed and
/// unaligned.
rc::Gen<quantize_case> quantize_cases();

/// What quantize_cases() draws and shrinks with.
quantize_case draw_quantize_case(const word_source& next);
/// Sets the shape, and a layout of every view.
void lay_out(quantize_case& c, std::int64_t rows, std::int64_t cols, const word_source& next);
/// Fewer rows or columns, plain views, one thread.
std::vector<quantize_case> simpler_shapes(const quantize_case& c);
/// Default options one by one.
std::vector<quantize_case> simpler_options(const quantize_case& c);

/// The matrix of a case: tiles of one magnitude each, of any bits, of zeros, and with NaN and Inf
/// among them.
strided_buffer matrix_of(const quantize_case& c);

/// Everything a quantization writes.
struct quantize_result {
  explicit quantize_result(const quantize_case& c);

  strided_buffer codes, scales, codes_transposed, scales_transposed;
  quantize_statistics statistics;

  [[nodiscard]] quantize_outputs outputs();
};

/// One of the host backends that can quantize and run here, by the case.
executor executor_of(const quantize_case& c);

/// Quantizes the case's matrix.
quantize_result quantized(const quantize_case& c, strided_buffer& in, const executor& where);

std::ostream& operator<<(std::ostream& out, const quantize_case& c);

}  // namespace samebits::support
