// Fixed point: numbers in [0, 1) of any precision, with the operations that series need. Host only.
#pragma once

#include <cstddef>
#include <cstdint>

namespace samebits::numerics {

/// A number in [0, 1): the sum of word[i] * 2^(-32 (i + 1)). An ulp is 2^(-32 W).
template <int W>
struct fraction {
  std::uint32_t word[std::size_t{W}] = {};
};

/// 1 - x - ulp.
template <int W>
constexpr fraction<W> complement(fraction<W> x) {
  for (std::uint32_t& word : x.word) word = ~word;
  return x;
}

/// The first V words of x; truncates by less than an ulp of the result.
template <int V, int W>
constexpr fraction<V> first_words(const fraction<W>& x) {
  static_assert(V <= W);
  fraction<V> y;
  for (int i = 0; i < V; ++i) y.word[i] = x.word[i];
  return y;
}

/// a * b, truncated by less than an ulp.
template <int W>
constexpr fraction<W> product(const fraction<W>& a, const fraction<W>& b) {
  std::uint32_t all[std::size_t{2 * W}] = {};
  for (int i = W - 1; i >= 0; --i) {
    std::uint64_t carry = 0;
    for (int j = W - 1; j >= 0; --j) {
      const std::uint64_t sum = std::uint64_t{a.word[i]} * b.word[j] + all[i + j + 1] + carry;
      all[i + j + 1] = static_cast<std::uint32_t>(sum);
      carry = sum >> 32;
    }
    all[i] = static_cast<std::uint32_t>(carry);
  }
  fraction<W> high;
  for (int i = 0; i < W; ++i) high.word[i] = all[i];
  return high;
}

/// (whole + a) / d for whole < d, truncated by less than an ulp.
template <int W>
constexpr fraction<W> quotient(fraction<W> a, std::uint32_t d, std::uint32_t whole = 0) {
  std::uint64_t rest = whole;
  for (std::uint32_t& word : a.word) {
    rest = rest << 32 | word;
    word = static_cast<std::uint32_t>(rest / d);
    rest %= d;
  }
  return a;
}

/// a * n, exactly: `whole` receives the integer part.
template <int W>
constexpr fraction<W> multiple(const fraction<W>& a, std::uint64_t n, std::uint64_t& whole) {
  const auto low = static_cast<std::uint32_t>(n);
  const auto high = static_cast<std::uint32_t>(n >> 32);
  fraction<W> y;
  // Words are done from the least significant one upward.
  std::uint64_t carry = 0;       // from `low` times the words done
  std::uint64_t high_carry = 0;  // from `high` times the words done
  std::uint32_t behind = 0;      // the lower half of `high` times the last word done
  for (int i = W - 1; i >= 0; --i) {
    carry += std::uint64_t{a.word[i]} * low + behind;
    y.word[i] = static_cast<std::uint32_t>(carry);
    carry >>= 32;
    high_carry += std::uint64_t{a.word[i]} * high;
    behind = static_cast<std::uint32_t>(high_carry);
    high_carry >>= 32;
  }
  whole = (high_carry << 32) + behind + carry;
  return y;
}

/// a * 2^-count, truncated by less than an ulp.
template <int W>
constexpr fraction<W> moved_down(const fraction<W>& a, int count) {
  const int words = count / 32;
  const int bits = count % 32;
  fraction<W> y;
  for (int i = W - 1; i >= words; --i) {
    const std::uint64_t above = i > words ? a.word[i - words - 1] : 0;
    y.word[i] = static_cast<std::uint32_t>((above << 32 | a.word[i - words]) >> bits);
  }
  return y;
}

/// The fractional part of a * 2^count, 0 < count < 32.
template <int W>
constexpr fraction<W> moved_up(fraction<W> a, int count) {
  for (int i = 0; i < W; ++i) {
    const std::uint32_t below = i + 1 < W ? a.word[i + 1] : 0;
    a.word[i] = a.word[i] << count | below >> (32 - count);
  }
  return a;
}

/// a + b; the largest fraction if the sum is 1 or more.
template <int W>
constexpr fraction<W> sum(fraction<W> a, const fraction<W>& b) {
  std::uint64_t carry = 0;
  for (int i = W - 1; i >= 0; --i) {
    carry += std::uint64_t{a.word[i]} + b.word[i];
    a.word[i] = static_cast<std::uint32_t>(carry);
    carry >>= 32;
  }
  return carry == 0 ? a : complement(fraction<W>{});
}

/// a - b; 0 if b is larger.
template <int W>
constexpr fraction<W> difference(const fraction<W>& a, const fraction<W>& b) {
  // 1 - ulp - ((1 - ulp - a) + b)
  return complement(sum(complement(a), b));
}

template <int W>
constexpr bool is_zero(const fraction<W>& x) {
  for (const std::uint32_t word : x.word) {
    if (word != 0) return false;
  }
  return true;
}

}  // namespace samebits::numerics
