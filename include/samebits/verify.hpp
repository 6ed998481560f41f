// Verification: proof on the user's own machine that every executor returns the reference's bits.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace samebits {

/// What was compared of one backend.
struct verification {
  std::string_view backend;
  /// "fp32 to e4m3, all 2^32 codes, 36 rules", "quantize bf16 to e4m3, 18 tiles, 4 maths,
  /// stochastic", "self-test, 7 checks". Of a backend that this machine cannot run there is
  /// one entry: "skipped: " and the reason, nothing compared.
  std::string what;
  std::uint64_t compared = 0;    ///< results
  std::uint64_t differed = 0;    ///< of them; memory written outside a view counts as one more
  std::string first_difference;  ///< input, result, expected one and rule; empty if none differed
};

enum class verify_extent : std::uint8_t {
  quick,       ///< some 10^9 results per backend; seconds
  exhaustive,  ///< all 2^32 fp32 inputs of the four common destinations by every rule: 6 * 10^11
};

struct verify_options {
  std::string_view backend = {};  ///< the only one; empty: all but the reference
  verify_extent extent = verify_extent::quick;
  int threads = 0;  ///< CPU threads, >= 1; 0: one per hardware thread
  /// Called as soon as each entry is complete, in the order of the returned ones.
  std::function<void(const verification&)> on_result = {};
};

/// Compares backends with the reference bit for bit, for every conversion they have: all codes of
/// the formats up to 16 bits, fp32 at every threshold and in a sweep, bit patterns of the wide
/// formats, stochastic rounding in whole calls, pieces and shards, strided and unaligned views.
/// Then quantization and dequantization, of backends that have them: every tile shape by every
/// scale maths and rounding, row-wise and transposed, a sweep over the amaxes, views, statistics.
/// The reference itself, if named, is compared with the scalar function convert_code and the
/// definition.
///
/// Each backend's self-test is an entry too, of which a failed check counts as differing; what
/// fails it is not asked to quantize.
///
/// Device backends run on the current device and need some 300 MB of its memory.
///
/// Throws invalid_argument for a name that is not compiled in or a negative number of threads,
/// unsupported for a named backend that this machine cannot run, cuda_error if the device fails.
std::vector<verification> verify(const verify_options& options = {});

}  // namespace samebits
