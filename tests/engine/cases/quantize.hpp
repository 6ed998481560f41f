// Quantizations of a matrix as cases.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/cases/operations.hpp"
#include "engine/core/layout.hpp"
#include "engine/core/strided_buffer.hpp"
#include "samebits/quantize.hpp"

namespace samebits::support {

/// Which outputs are wanted.
struct wanted_outputs {
  bool codes = true;
  bool scales = true;
  bool codes_transposed = false;
  bool scales_transposed = false;
  bool statistics = false;
};

/// What a matrix holds: tiles of one magnitude each, of any bits, of zeros, and with NaN and Inf
/// among them; any bits; nothing but NaN; every amax_step-th fp32 code from the content on, one a
/// tile; or large elements in a tile with an Inf.
enum class matrix_content : std::uint8_t { mixed, any_bits, nan, amaxes, large_beside_inf };
inline constexpr std::uint32_t amax_step = 14983;

/// One quantization, with a layout for every view.
struct quantize_case {
  format_id from = format_id::fp32;
  format_id to = format_id::e4m3;
  quantize_options options = {};
  array_layout in = {};
  array_layout codes = {}, scales = {}, codes_transposed = {}, scales_transposed = {};
  format_id scale_format = format_id::fp32;
  bool plain = false;  ///< every view dense, and aligned to 16 bytes
  int threads = 1;
  std::uint64_t content = 0;  ///< seed of the elements
  matrix_content kind = matrix_content::mixed;
  wanted_outputs wanted = {};
  bool inverse_scales = false;
  bool tensor_scale = false;               ///< given, for a rule with two levels
  std::optional<std::uint32_t> skip = {};  ///< a flag that turns the call off if it is not 0
};

void describe(quantize_case& c, case_fields& fields);

/// A case of at most some 70000 elements: any number of rows and columns incl. 0, tiles larger than
/// the matrix, every option; half of them plain, the others with views padded, transposed and
/// unaligned. Codes and scales are wanted.
quantize_case draw_quantize_case(const word_source& next);
/// Sets the shape, and a layout of every view.
void lay_out(quantize_case& c, std::int64_t rows, std::int64_t cols, const word_source& next);

/// The matrix of a case.
strided_buffer matrix_of(const quantize_case& c);

// The buffers of a case; a list's tensors have those before the statistics, one after another.
namespace quantize_buffers {
inline constexpr std::size_t in = 0, inverse_scales = 1, codes = 2, scales = 3,
                             codes_transposed = 4, scales_transposed = 5, tensor_scale = 6,
                             tensor_scale_written = 7, of_tensor = 8, statistics = 8, skip = 9;
}
/// quantize(): any tiles, scale rules, policies, rounding, inverse_scales and subset of outputs.
operation_of<quantize_case> quantizations(matrix_sizes sizes = matrix_sizes::any);
/// The outputs of a tensor whose buffers begin at `first`.
quantize_outputs outputs_of(const quantize_case& c, const call_site& site, std::size_t first = 0);
/// The options of the call, with what they point to.
quantize_options options_of(const quantize_case& c, const call_site& site);

/// Tensors with the rule and the formats of the first.
struct list_quantization {
  std::vector<quantize_case> tensors;
  int threads = 1;
};
void describe(list_quantization& c, case_fields& fields);
/// quantize() of a list.
operation_of<list_quantization> list_quantizations(matrix_sizes sizes = matrix_sizes::any);

}  // namespace samebits::support
