// Verification: compares every backend with the reference bit for bit on the user's own machine.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "samebits/core/table.hpp"

namespace samebits {

/// One comparison of one backend.
struct verification {
  std::string_view backend;
  /// Description of the comparison, such as "fp32 to e4m3, all 2^32 codes, 36 rules", "quantize
  /// bf16 to e4m3, 18 tiles, 4 scale rules, stochastic", "self-test, 7 checks". A backend that this
  /// machine cannot run has one entry, "skipped: " and the reason, and nothing is compared.
  std::string what;
  std::uint64_t compared = 0;    ///< number of results
  std::uint64_t differed = 0;    ///< results that differ, plus 1 for writes outside a view
  std::string first_difference;  ///< input, result, expected one and rule; empty if none differed
};

/// Extent of verify().
enum class verify_extent : std::uint8_t {
  quick,       ///< some 10^9 results per backend; seconds
  exhaustive,  ///< all 2^32 fp32 inputs of the four common destinations by every rule: 6 * 10^11
};
template <>
inline constexpr auto table_of<verify_extent> =
    enum_table<verify_extent::exhaustive>({"quick", "exhaustive"});

/// Options of verify().
struct verify_options {
  std::string_view backend = {};  ///< the only backend to compare; empty: all but the reference
  verify_extent extent = verify_extent::quick;
  int threads = 0;  ///< CPU threads, >= 1; 0: one per hardware thread
  /// Called with each entry as soon as it is complete, in the order of the returned entries.
  std::function<void(const verification&)> on_result = {};
};

/// Compares backends with the reference bit for bit.
///
/// Compared of each backend:
/// - The backend's self-test. A failed check counts as a difference, and the backend is then not
///   asked to quantize.
/// - Every conversion that the backend has: all codes of the formats up to 16 bits; fp32 at every
///   threshold and in a sweep; bit patterns of the wide formats; stochastic rounding in whole
///   calls, chunks and shards; strided and unaligned views.
/// - Quantization and dequantization, if the backend has them: every tile shape with every scale
///   rule and rounding, row-wise and transposed; a sweep over the amaxes; views; statistics.
///
/// The reference itself, if named, is compared with the scalar function convert_code and the
/// definition.
///
/// @param options  backend, extent and threads
/// @returns one entry per comparison
/// @throws invalid_argument for a name that is not compiled in or a negative number of threads.
/// @throws unsupported for a named backend that this machine cannot run.
/// @throws cuda_error if the device fails.
/// @note Device backends run on the current device and need some 300 MB of its memory.
std::vector<verification> verify(const verify_options& options = {});

}  // namespace samebits
