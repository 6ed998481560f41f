// Inspect: what one read-only pass finds out about elements, chunks and tensors.
//
// Counts and maxima join in any order; sums of squares only as the tree of sum_tree.hpp says.
#pragma once

#include <cstdint>

#include "numerics/arithmetic/binary32.hpp"
#include "numerics/arithmetic/binary64.hpp"
#include "numerics/bits/decode.hpp"
#include "numerics/bits/layout.hpp"
#include "numerics/sums/sum_tree.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"

namespace samebits::numerics {

/// A chunk's figures. At most chunk_elements elements, so that 16 bits hold each count.
struct chunk_tally {
  std::uint64_t squares;  ///< the sum's node, binary64 bits; any NaN stands for the canonical one
  std::uint32_t amax;     ///< binary32 bits (contract §6): 7FFFFFFF where an element is NaN
  std::uint16_t nan;      ///< elements
  std::uint16_t inf;      ///< elements
  std::uint16_t zeros;    ///< of either sign; 0 unless asked for
  std::uint16_t subnormals;  ///< in the tensor's own format; 0 unless asked for
};
static_assert(sizeof(chunk_tally) == 24);

/// Buckets of the histogram of exponents: bucket f counts the elements whose value in binary32 has
/// the exponent field f. 0 holds zeros and binary32's subnormals, 1 .. 254 values of
/// [2^(f - 127), 2^(f - 126)), 255 Inf and NaN.
inline constexpr int exponent_buckets = 256;
SAMEBITS_INLINE constexpr std::uint32_t exponent_bucket(std::uint32_t x) {
  return binary32::magnitude(x) >> 23;
}

/// The smallest normal number of a format, as binary32 bits.
SAMEBITS_INLINE constexpr std::uint32_t least_normal(const format_spec& f) {
  return decode<std::uint32_t>(f, std::uint32_t{1} << static_cast<std::uint32_t>(f.mantissa_bits));
}

/// Adds an element, as binary32 bits, to a chunk's amax and counts of NaN and Inf.
SAMEBITS_INLINE constexpr void count_element(chunk_tally& tally, std::uint32_t x) {
  const std::uint32_t m = binary32::amax_bits(x);
  if (tally.amax < m) tally.amax = m;
  if (m > binary32::inf) ++tally.nan;
  if (m == binary32::inf) ++tally.inf;
}

/// Adds an element to a chunk's counts of zeros and subnormals; `least` is its format's
/// least_normal().
SAMEBITS_INLINE constexpr void count_small(chunk_tally& tally, std::uint32_t x,
                                           std::uint32_t least) {
  const std::uint32_t m = binary32::magnitude(x);
  if (m == 0) ++tally.zeros;
  if (m != 0 && m < least) ++tally.subnormals;
}

/// RN64(x * x) of binary32 bits, which is exact. NaN is the canonical one.
SAMEBITS_INLINE constexpr std::uint64_t square(std::uint32_t x) {
  const std::uint32_t m = binary32::magnitude(x);
  if (m > binary32::inf) return binary64::nan;
  const std::uint64_t wide = binary64::widen(m);
  return binary64::multiply(wide, wide);
}

/// RN64(left + right) of two nodes of squares; either may be any NaN.
SAMEBITS_INLINE constexpr std::uint64_t add_squares(std::uint64_t left, std::uint64_t right) {
  if (left > binary64::inf || right > binary64::inf) return binary64::nan;
  return binary64::add(left, right);
}

/// A sum over the fixed tree of nodes that are not negative, as binary64 bits.
class square_sum {
 public:
  SAMEBITS_HD constexpr void add(std::uint64_t leaf) {
    append_leaf(waiting_, count_, leaf, adder{});
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

/// An L2 norm from its sum of squares: RN64(sqrt(sum)).
SAMEBITS_INLINE constexpr std::uint64_t norm_of(std::uint64_t squares) {
  return squares > binary64::inf ? binary64::nan : binary64::square_root(squares);
}

/// What elements are multiplied by so that their norm does not exceed max_norm: in binary64
/// min(1, RN(max_norm / RN(norm + 1e-6))), then rounded into binary32. NaN if the norm is; 0 if it
/// is infinite and max_norm is not. Neither is negative, and max_norm is not NaN.
SAMEBITS_INLINE constexpr std::uint32_t clip_factor(std::uint64_t norm, std::uint64_t max_norm) {
  constexpr std::uint64_t least = 0x3EB0C6F7A0B5ED8Du;  // RN64(1e-6)
  if (norm > binary64::inf) return binary32::nan;
  const std::uint64_t quotient = binary64::divide(max_norm, binary64::add(norm, least));
  if (quotient > binary64::inf) return binary32::nan;  // Inf / Inf
  return binary64::narrow(quotient < binary64::one ? quotient : binary64::one);
}

}  // namespace samebits::numerics
