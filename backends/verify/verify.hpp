// What is verified: the oracle of the reference, the amount of comparisons, self-tests.
#pragma once

#include <cstdint>

#include "backends/dispatch/backend.hpp"
#include "backends/dispatch/calls/quantize.hpp"
#include "samebits/verify.hpp"

namespace samebits::backends::verification {

/// The oracle for the reference backend: converts with convert_code and random_word, element by
/// element; quantizes, without statistics, by the definition in numerics/. Has no other operation.
extern const backend scalar;
void scalar_quantize(const quantize_call& call, const executor& where);
void scalar_dequantize(const dequantize_call& call, const executor& where);

/// The amount of comparisons.
struct effort {
  std::uint64_t fp32_stride;        ///< stride of the sweep over all fp32 codes
  std::uint64_t patterns;           ///< random codes per format pair with a wide source
  std::uint64_t grid_limit;         ///< `limit` of threshold_codes()
  std::uint64_t stochastic;         ///< elements per source, slice and number of random bits
  std::uint64_t stochastic_slices;  ///< each slice has its own seeds, streams and offsets
  std::uint64_t slice;              ///< elements that are converted at a time
  /// Passes over tiles, scale rules, formats and modes of quantization.
  std::uint64_t quantize_rounds = 1;
  std::uint64_t amax_stride = 1 << 14;  ///< stride of the sweep over all positive amaxes
};
effort effort_of(verify_extent extent);

/// The self-test of a backend that can run here: the number of its checks and of failures.
samebits::verification self_test_entry_of(const backend& b);

}  // namespace samebits::backends::verification
