// Proves a user's quantizer: compares every code and every scale with quantize().
//
//   const auto result = samebits::testkit::check_quantize(
//       samebits::testkit::quantizer_of("DEEPGEMM_FP32_CUDA"),
//       [](std::span<const float> in, std::int64_t rows, std::int64_t cols,
//          std::span<std::uint8_t> codes, std::span<float> scales) { my_quantizer(...); });
//   EXPECT_TRUE(result) << result.message();
//
// Plain C++20: includes neither GoogleTest, RapidCheck nor Boost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "samebits/core/format.hpp"
#include "samebits/quantize.hpp"
#include "samebits/testkit/conversion.hpp"
#include "samebits/testkit/domain.hpp"

namespace samebits::testkit {

/// Specification of a quantizer under test: the result of samebits::quantize() with these options.
struct quantizer_under_test {
  format_id from = format_id::fp32;  ///< fp32, fp16 or bf16
  format_id to = format_id::e4m3;    ///< e4m3 or e5m2
  /// options.inverse_scales, skip_if_nonzero and workspace must be empty.
  quantize_options options = {};
  format_id scale_format = format_id::fp32;  ///< fp32 or e8m0
  nan_result nan = nan_result::any;          ///< of codes and of scales
  input_domain domain = {};                  ///< elements that the quantizer supports
};

/// Returns the specification of a recipe, such as "TE_CURRENT".
///
/// @throws invalid_argument if no recipe has this name, or if the recipe's scales are delayed
quantizer_under_test quantizer_of(std::string_view recipe, format_id from = format_id::fp32,
                                  format_id to = format_id::e4m3);

/// Amount of tests. The defaults take about a second besides the quantizer.
struct quantize_effort {
  int matrices = 60;                  ///< random matrices; one call of the quantizer each
  std::int64_t max_elements = 70000;  ///< of one matrix, >= 1
  std::uint64_t seed = 0;  ///< of the matrices; 0: RC_PARAMS="seed=N" if set, else a new seed
};

enum class quantized_part : std::uint8_t { scale, code };

/// The first wrong scale of the smallest failing call; if all scales are right, the first wrong
/// code.
struct quantize_counterexample {
  quantized_part part = quantized_part::scale;
  std::int64_t rows = 0;  ///< of the matrix
  std::int64_t cols = 0;
  std::int64_t tile_row = 0;  ///< position of the tile among the tiles
  std::int64_t tile_col = 0;
  std::int64_t row = 0;  ///< of the element; for a scale the tile's first element
  std::int64_t col = 0;
  std::uint64_t input = 0;  ///< code of this element
  std::uint64_t got = 0;
  std::uint64_t expected = 0;
};

using quantize_check_result = result_of_check<quantize_counterexample>;

/// One call of a quantizer under test: three blocks of memory, and the offset of the first element
/// of each array in its block, in bytes. Blocks start at 256-byte borders and include guard bytes.
struct raw_quantize_call {
  std::span<std::byte> in_memory;
  std::span<std::byte> codes_memory;
  std::span<std::byte> scales_memory;
  std::size_t in_at = 0;
  std::size_t codes_at = 0;
  std::size_t scales_at = 0;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t scales = 0;  ///< number of scales
};

/// A type-erased quantizer under test, and the sizes of its elements.
struct raw_quantizer {
  std::function<void(const raw_quantize_call&)> call;
  std::size_t in_bytes = 0;
  std::size_t code_bytes = 0;
  std::size_t scale_bytes = 0;
};

/// Runs a quantizer on random matrices, and compares every code and scale with samebits::quantize()
/// on backend "reference".
///
/// Matrices have tiles cut off at the right and bottom edges, tiles of zeros only, of subnormal
/// numbers, with outliers, ties, NaN and Inf, and sizes 0 and 1. A failing call is shrunk to fewer
/// rows, columns and elements other than 0, by running smaller calls.
///
/// @param quantizer  formats, options and domain
/// @param function  the quantizer under test. All arrays are dense and row-major.
/// @param effort  amount of tests
/// @returns the number of compared results, and the failure
/// @throws invalid_argument if the function's element sizes are not those of the formats, if the
///   effort is out of range, or if quantize() refuses the options
quantize_check_result check_raw_quantize(const quantizer_under_test& quantizer,
                                         const raw_quantizer& function,
                                         const quantize_effort& effort = {});

namespace detail {

template <class T>
struct quantizer_signature;
template <class In, class Code, class Scale>
struct quantizer_signature<std::function<void(std::span<const In>, std::int64_t, std::int64_t,
                                              std::span<Code>, std::span<Scale>)>> {
  using in = In;
  using code = Code;
  using scale = Scale;
};

}  // namespace detail

/// A callable void(std::span<const In> in, std::int64_t rows, std::int64_t cols,
/// std::span<Code> codes, std::span<Scale> scales) with fixed argument types.
template <class Function>
concept host_quantizer = requires {
  typename detail::quantizer_signature<detail::signature_of<Function>>::in;
};

/// Calls check_raw_quantize() with a host function.
///
/// @param quantizer  formats, options and domain
/// @param function  receives a matrix [rows, cols], and writes rows * cols codes and one scale per
///   tile, row-major. In, Code and Scale are trivially copyable types of the formats' storage
///   sizes.
/// @param effort  amount of tests
template <host_quantizer Function>
quantize_check_result check_quantize(const quantizer_under_test& quantizer, Function function,
                                     const quantize_effort& effort = {}) {
  using signature = detail::quantizer_signature<detail::signature_of<Function>>;
  using in = typename signature::in;
  using code = typename signature::code;
  using scale = typename signature::scale;
  static_assert(std::is_trivially_copyable_v<in> && std::is_trivially_copyable_v<code> &&
                std::is_trivially_copyable_v<scale>);
  const auto call = [&function](const raw_quantize_call& c) {
    const auto count = static_cast<std::size_t>(c.rows * c.cols);
    function(std::span(reinterpret_cast<const in*>(c.in_memory.data() + c.in_at), count), c.rows,
             c.cols, std::span(reinterpret_cast<code*>(c.codes_memory.data() + c.codes_at), count),
             std::span(reinterpret_cast<scale*>(c.scales_memory.data() + c.scales_at),
                       static_cast<std::size_t>(c.scales)));
  };
  return check_raw_quantize(quantizer, {call, sizeof(in), sizeof(code), sizeof(scale)}, effort);
}

/// Calls check_quantize() with the specification of a recipe, for an fp32 source and e4m3 codes.
template <host_quantizer Function>
quantize_check_result check_quantize(std::string_view recipe, Function function,
                                     const quantize_effort& effort = {}) {
  return check_quantize(quantizer_of(recipe), std::move(function), effort);
}

}  // namespace samebits::testkit
