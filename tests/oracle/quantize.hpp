// Tile quantization and dequantization of whole matrices (contract §7), an element at a time.
//
// Where §7 leaves something open beside scale.hpp's list, this oracle reads it so:
// - A NaN element's code is 7F under every policy: y is a binary32 result, hence the canonical NaN
//   (§2), also in a zero tile, where x * 1 stands for x. So nan_policy::preserve_sign shows only
//   where an infinite or too large y becomes E4M3's NaN (overflow ieee, saturate_finite).
// - Dequantization is y = RN32(value · s), where ±Inf and NaN follow IEEE 754, then one conversion
// to
//   the output format by the caller's rule: two roundings for fp16 and bf16, since §6 makes each
//   step a binary32 operation, and since the fp32 result is then the same number in every call.
// - A tile larger than the matrix is one tile; an empty matrix has no tiles.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "oracle/quantize_statistics.hpp"
#include "oracle/scale.hpp"
#include "samebits/core/rounding.hpp"

namespace samebits::oracle {

/// A matrix's extent and its tiles', in elements.
struct tiling {
  std::uint64_t rows = 0;          ///< M
  std::uint64_t columns = 0;       ///< K
  std::uint64_t tile_rows = 1;     ///< bm, > 0
  std::uint64_t tile_columns = 1;  ///< bk, > 0
};

struct quantize_rule {
  scale_settings scale;
  /// nearest_even or stochastic; quantizers saturate by default.
  cast_rule cast{rounding::nearest_even, overflow::saturate, nan_policy::canonical};
  /// Read by rounding::stochastic alone; element (r, c) of the source draws at index
  /// offset + r * pitch + c for both outputs.
  random_stream random;
  /// Not empty: S of each tile, row-major binary32 codes, instead of those of the rule.
  std::vector<std::uint32_t> inverse_scales = {};
  /// The given scale of the tensor, instead of that of its amax; for a rule with two levels.
  std::optional<std::uint32_t> tensor_scale = std::nullopt;
};

/// Everything a quantizer returns. Matrices are dense and row-major.
struct quantized {
  std::vector<std::uint8_t> codes;    ///< [M, K]
  std::vector<std::uint32_t> scales;  ///< [⌈M/bm⌉, ⌈K/bk⌉], binary32 codes of s
  std::uint32_t tensor_scale = 0;     ///< of a rule with two levels
  std::vector<std::uint32_t> e8m0;    ///< the scales' e8m0 codes; empty for other scale rules
  quantize_statistics statistics;
};

/// Quantizes the dense row-major codes of a matrix in `from` (fp32, bf16, fp16) to e4m3, e5m2, e2m1,
/// e2m3 or e3m2.
quantized quantize(const format& from, const format& to, std::span<const std::uint32_t> codes,
                   const tiling& tiles, const quantize_rule& rule);

/// The codes in `to` (fp32, bf16, fp16) of the quantized matrix, by a deterministic rule.
std::vector<std::uint32_t> dequantize(const format& from, const format& to,
                                      std::span<const std::uint8_t> codes,
                                      std::span<const std::uint32_t> scales, const tiling& tiles,
                                      const cast_rule& rule = {}, scale_rule by = scale_rule::te,
                                      std::uint32_t tensor_scale = 0x3F800000);

/// RN32(value of `code` in `from` * s), a binary32 code.
std::uint32_t dequantized_value(const format& from, std::uint8_t code, std::uint32_t s);

}  // namespace samebits::oracle
