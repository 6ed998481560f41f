// Inspect: the statistics that one read-only pass computes for elements, chunks and tensors.
//
// Counts and maxima may be combined in any order. Sums of squares follow the tree of sum_tree.hpp.
#pragma once

#include <cstdint>

#include "numerics/arithmetic/binary32.hpp"
#include "numerics/arithmetic/binary64.hpp"
#include "numerics/bits/decode.hpp"
#include "numerics/bits/layout.hpp"
#include "numerics/sums/squares.hpp"
#include "numerics/sums/sum_tree.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"

namespace samebits::numerics {

/// Partial statistics of a chunk. A chunk has at most chunk_elements elements, so 16 bits hold each
/// count.
struct chunk_statistics {
  /// Partial sum of squares, binary64 bits; any NaN means the canonical NaN.
  std::uint64_t squares;
  std::uint32_t amax;        ///< binary32 bits (contract §6); 7FFFFFFF if an element is NaN
  std::uint16_t nan;         ///< number of NaN elements
  std::uint16_t inf;         ///< number of Inf elements
  std::uint16_t zeros;       ///< of either sign; 0 unless requested
  std::uint16_t subnormals;  ///< in the tensor's own format; 0 unless requested
};
static_assert(sizeof(chunk_statistics) == 24);

/// Number of buckets of the exponent histogram. Bucket f counts the elements whose binary32 value
/// has the exponent field f. Bucket 0 holds zeros and binary32's subnormals. Buckets 1 .. 254 hold
/// [2^(f - 127), 2^(f - 126)). Bucket 255 holds Inf and NaN.
inline constexpr int exponent_buckets = 256;
SAMEBITS_INLINE constexpr std::uint32_t exponent_bucket(std::uint32_t x) {
  return binary32::magnitude(x) >> 23;
}

/// The smallest normal number of a format, as binary32 bits.
SAMEBITS_INLINE constexpr std::uint32_t min_normal(const format_spec& f) {
  return decode<std::uint32_t>(f, std::uint32_t{1} << static_cast<std::uint32_t>(f.mantissa_bits));
}

/// Adds one element (binary32 bits) to a chunk's amax and its counts of NaN and Inf.
SAMEBITS_INLINE constexpr void count_element(chunk_statistics& statistics, std::uint32_t x) {
  const std::uint32_t m = binary32::amax_bits(x);
  if (statistics.amax < m) statistics.amax = m;
  if (m > binary32::inf) ++statistics.nan;
  if (m == binary32::inf) ++statistics.inf;
}

/// Adds one element to a chunk's counts of zeros and subnormals. `minimum` is min_normal() of the
/// element's format.
SAMEBITS_INLINE constexpr void count_small(chunk_statistics& statistics, std::uint32_t x,
                                           std::uint32_t minimum) {
  const std::uint32_t m = binary32::magnitude(x);
  if (m == 0) ++statistics.zeros;
  if (m != 0 && m < minimum) ++statistics.subnormals;
}

/// A sum of non-negative inputs over the fixed tree, as binary64 bits.
class square_sum {
 public:
  SAMEBITS_HD constexpr void add(std::uint64_t input) {
    append_input(waiting_, count_, input, adder{});
  }
  [[nodiscard]] SAMEBITS_HD constexpr std::uint64_t value() const {
    const std::uint64_t sum = root_of_tree(waiting_, count_, std::uint64_t{0}, adder{});
    return sum > binary64::inf ? binary64::nan : sum;
  }

 private:
  struct adder {
    SAMEBITS_HD constexpr std::uint64_t operator()(std::uint64_t left, std::uint64_t right) const {
      return add_squares(left, right);
    }
  };
  std::uint64_t count_ = 0;
  std::uint64_t waiting_[64] = {};
};

/// The L2 norm RN64(sqrt(squares)) of a sum of squares.
SAMEBITS_INLINE constexpr std::uint64_t norm_of(std::uint64_t squares) {
  return squares > binary64::inf ? binary64::nan : binary64::square_root(squares);
}

/// The factor by which elements are multiplied so that their norm does not exceed max_norm: in
/// binary64 min(1, RN(max_norm / RN(norm + 1e-6))), then rounded to binary32. A NaN norm gives NaN.
/// An infinite norm with a finite max_norm gives 0. Requires both to be non-negative and max_norm
/// not NaN.
SAMEBITS_INLINE constexpr std::uint32_t clip_factor(std::uint64_t norm, std::uint64_t max_norm) {
  constexpr std::uint64_t minimum = 0x3EB0C6F7A0B5ED8Du;  // RN64(1e-6)
  if (norm > binary64::inf) return binary32::nan;
  const std::uint64_t quotient = binary64::divide(max_norm, binary64::add(norm, minimum));
  if (quotient > binary64::inf) return binary32::nan;  // Inf / Inf
  return binary64::narrow(quotient < binary64::one ? quotient : binary64::one);
}

}  // namespace samebits::numerics
