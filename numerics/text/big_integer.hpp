// An unsigned integer of up to 3584 bits, with the operations that exact decimal conversion needs.
#pragma once

#include <bit>
#include <compare>
#include <cstdint>

namespace samebits::numerics {

/// Little-endian limbs of 32 bits in fixed storage: constexpr, never allocates. Host only.
///
/// The caller must stay below 3584 bits; numerics/text/text.hpp derives why this suffices.
class big_integer {
 public:
  static constexpr int max_limbs = 112;

  constexpr big_integer() = default;
  explicit constexpr big_integer(std::uint64_t value) {
    push(static_cast<std::uint32_t>(value));
    push(static_cast<std::uint32_t>(value >> 32));
    trim();
  }

  [[nodiscard]] constexpr bool is_zero() const { return size_ == 0; }

  /// Position of the highest set bit plus one; 0 for 0.
  [[nodiscard]] constexpr int bit_length() const {
    return size_ == 0 ? 0 : 32 * size_ - std::countl_zero(limb_[size_ - 1]);
  }

  /// this = this * factor + addend.
  constexpr void multiply_add(std::uint32_t factor, std::uint32_t addend) {
    std::uint64_t carry = addend;
    for (int i = 0; i < size_; ++i) {
      carry += std::uint64_t{limb_[i]} * factor;
      limb_[i] = static_cast<std::uint32_t>(carry);
      carry >>= 32;
    }
    push(static_cast<std::uint32_t>(carry));
    trim();
  }

  /// this = this * 5^exponent.
  constexpr void multiply_power_of_5(int exponent) {
    constexpr int step = 13;
    constexpr std::uint32_t five_to_step = 1'220'703'125;  // 5^13, the largest below 2^32
    for (; exponent >= step; exponent -= step) multiply_add(five_to_step, 0);
    for (; exponent > 0; --exponent) multiply_add(5, 0);
  }

  /// this = this * 2^count.
  constexpr void shift_left(int count) {
    if (size_ == 0 || count == 0) return;
    const int limbs = count / 32;
    const int bits = count % 32;
    for (int i = size_ - 1; i >= 0; --i) limb_[i + limbs] = limb_[i];
    for (int i = 0; i < limbs; ++i) limb_[i] = 0;
    size_ += limbs;
    if (bits != 0) multiply_add(std::uint32_t{1} << bits, 0);
  }

  /// this = this * 10^exponent.
  constexpr void multiply_power_of_10(int exponent) {
    multiply_power_of_5(exponent);
    shift_left(exponent);
  }

  /// this = this / divisor; returns the remainder.
  constexpr std::uint32_t divide(std::uint32_t divisor) {
    std::uint64_t remainder = 0;
    for (int i = size_ - 1; i >= 0; --i) {
      remainder = (remainder << 32) | limb_[i];
      limb_[i] = static_cast<std::uint32_t>(remainder / divisor);
      remainder %= divisor;
    }
    trim();
    return static_cast<std::uint32_t>(remainder);
  }

  /// Requires other <= *this.
  constexpr big_integer& operator-=(const big_integer& other) {
    std::uint64_t borrow = 0;
    for (int i = 0; i < size_; ++i) {
      const std::uint64_t taken = borrow + (i < other.size_ ? other.limb_[i] : 0);
      const std::uint64_t difference = limb_[i] - taken;  // wraps if a borrow is needed
      limb_[i] = static_cast<std::uint32_t>(difference);
      borrow = difference >> 63;
    }
    trim();
    return *this;
  }

  friend constexpr std::strong_ordering operator<=>(const big_integer& a, const big_integer& b) {
    if (a.size_ != b.size_) return a.size_ <=> b.size_;
    for (int i = a.size_ - 1; i >= 0; --i) {
      if (a.limb_[i] != b.limb_[i]) return a.limb_[i] <=> b.limb_[i];
    }
    return std::strong_ordering::equal;
  }
  friend constexpr bool operator==(const big_integer& a, const big_integer& b) {
    return std::is_eq(a <=> b);
  }

 private:
  constexpr void push(std::uint32_t top) {
    if (top != 0 || size_ == 0) limb_[size_++] = top;
  }
  constexpr void trim() {
    while (size_ > 0 && limb_[size_ - 1] == 0) --size_;
  }

  std::uint32_t limb_[max_limbs] = {};
  int size_ = 0;  ///< number of used limbs; the highest one is not 0
};

}  // namespace samebits::numerics
