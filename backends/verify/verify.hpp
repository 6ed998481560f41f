// Verification of any list of backends, as the tests need it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "backends/dispatch/backend.hpp"
#include "backends/dispatch/quantize.hpp"
#include "samebits/verify.hpp"

namespace samebits::backends::verification {

/// Writes the right results of a range of elements; called from several threads at once.
using judge_function = void (*)(const convert_call& call, element_range range);

/// The judge of the reference: convert_code and random_word, element by element.
void scalar_convert(const convert_call& call, element_range range);

/// The judge of the reference's quantization, statistics left out: the definition in numerics/ by
/// convert_code and random_word.
extern const quantizer scalar_quantizer;

/// How much is compared.
struct effort {
  std::uint64_t fp32_stride;            ///< of the sweep over all fp32 codes
  std::uint64_t patterns;               ///< random codes per pair of formats with a wide source
  std::uint64_t grid_limit;             ///< of threshold_codes()
  std::uint64_t stochastic;             ///< elements per source, slice and number of random bits
  std::uint64_t stochastic_slices;      ///< each with seeds, streams and offsets of its own
  std::uint64_t slice;                  ///< elements that are converted at a time
  std::uint64_t quantize_rounds = 1;    ///< over tiles, maths, formats and modes of quantization
  std::uint64_t amax_stride = 1 << 14;  ///< of the sweep over all positive amaxes
};
effort effort_of(verify_extent extent);

/// Compares each backend with the judge. Per check there is one entry for each backend that has
/// something of it, complete when on_result (which may be empty) is called with it.
std::vector<samebits::verification> run_checks(
    std::span<const backend* const> backends, judge_function judge, const effort& much, int threads,
    const std::function<void(const samebits::verification&)>& on_result);

/// The self-test of a backend that runs here: its checks, and those that failed.
samebits::verification self_test_entry_of(const backend& b);

/// The same as run_checks() for quantization and dequantization, with a quantizer as judge, of
/// those backends that quantize.
std::vector<samebits::verification> run_quantize_checks(
    std::span<const backend* const> backends, const quantizer& judge, const effort& much,
    int threads, const std::function<void(const samebits::verification&)>& on_result);

}  // namespace samebits::backends::verification
