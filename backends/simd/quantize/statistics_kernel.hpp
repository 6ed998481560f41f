// Statistics of one quantized chunk in SIMD lanes: counts (numerics/quantize/statistics.hpp) and the
// sums of signal and noise. Compiled once per instruction set, under the rules of
// quantize_kernel.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/reference/quantize_statistics.hpp"
#include "backends/simd/lanes/access.hpp"
#include "backends/simd/lanes/amax.hpp"
#include "backends/simd/lanes/tree_block.hpp"
#include "numerics/arithmetic/binary32.hpp"
#include "numerics/bits/decode.hpp"
#include "numerics/sums/sum_tree.hpp"

namespace samebits::simd {

/// A quantized chunk: contiguous elements and codes, and the factor and the dequantization scale of
/// each element.
struct quantized_chunk {
  const std::byte* in;
  const std::byte* codes;
  const std::uint32_t* factors;
  const std::uint32_t* scales;
  std::int64_t count;  ///< 1 .. chunk_elements
  bool divide;         ///< elements were divided by the factors
  std::uint32_t overflow_start;
};

/// The elements and the dequantized elements of a chunk as binary32 bits. Both are +0 for elements
/// that do not contribute to the sums, and after the last element.
struct chunk_pairs {
  alignas(64) std::uint32_t x[numerics::chunk_elements];
  alignas(64) std::uint32_t restored[numerics::chunk_elements];
};

/// The smallest magnitude above zero, from the minimum in each lane of the magnitudes minus 1.
template <class Isa>
SAMEBITS_INLINE std::uint32_t min_of(typename Isa::word min_below) {
  const std::uint32_t below = ~Isa::largest(typename Isa::word(~0u) - min_below);
  const bool any = below < numerics::binary32::max_finite;
  return any ? below + 1 : numerics::quantize_counts::none;
}

/// Counts of one chunk, in lanes.
template <class Isa>
struct count_lanes {
  using word = typename Isa::word;
  word zeros = 0u, nan = 0u, inf = 0u, underflowed = 0u, saturated = 0u, amax = 0u;
  word min_below = ~0u;  ///< min magnitude above zero, minus 1; zeros give 2^32 - 1

  /// Adds one register of elements, with the codes without their signs, and returns the lanes that contribute to the sums as all ones.
  SAMEBITS_INLINE word add(word x, word y, word magnitude, word restored, word overflow_start) {
    namespace binary32 = numerics::binary32;
    const word zero = 0u;
    const word one = 1u;
    const word max_finite = binary32::max_finite;
    const word inf_bits = binary32::inf;
    const word sign_off = ~binary32::sign_bit;
    const word m = x & sign_off;
    const word scaled = y & sign_off;
    const auto is_zero = m == zero;
    const auto finite = !(m > max_finite);
    const auto to_zero = (magnitude == zero) | ((restored & sign_off) == zero);
    const auto beyond = (scaled >= overflow_start) & (inf_bits >= scaled);
    zeros = zeros + select(is_zero, one, zero);
    inf = inf + select(m == inf_bits, one, zero);
    nan = nan + select(m > inf_bits, one, zero);
    underflowed = underflowed + select(to_zero & finite & !is_zero, one, zero);
    saturated = saturated + select(beyond & finite & !is_zero, one, zero);
    amax = max_word(amax, m);
    min_below = min_word(min_below, m - one);
    const auto pairs = finite & !((restored & sign_off) > max_finite);
    return select(pairs, word(~0u), zero);
  }

  [[nodiscard]] SAMEBITS_INLINE numerics::quantize_counts total() const {
    return {sum_of_lanes<Isa>(zeros),     sum_of_lanes<Isa>(nan),
            sum_of_lanes<Isa>(inf),       sum_of_lanes<Isa>(underflowed),
            sum_of_lanes<Isa>(saturated), numerics::binary32::amax_bits(Isa::largest(amax)),
            min_of<Isa>(min_below)};
  }
};

/// Codes without their signs.
template <class Target, class Word>
SAMEBITS_INLINE Word code_magnitude(Word code) {
  return code & Word(static_cast<std::uint32_t>(numerics::magnitude_mask(Target::spec())));
}

/// binary32 bits of finite codes. Other codes give anything.
template <class Isa, class Target>
SAMEBITS_INLINE typename Isa::word decode_finite(typename Isa::word code) {
  using word = typename Isa::word;
  constexpr format_spec f = Target::spec();
  constexpr auto rebias = static_cast<std::uint32_t>(127 - f.bias);
  constexpr auto unit = static_cast<std::uint32_t>(128 - f.bias - f.mantissa_bits) << 23;
  const word magnitude = code_magnitude<Target>(code);
  const word normal =
      (magnitude << static_cast<std::uint32_t>(23 - f.mantissa_bits)) + word(rebias << 23);
  const word subnormal = Isa::multiply(Isa::from_integer(magnitude), unit);
  const word min_normal = std::uint32_t{1} << f.mantissa_bits;
  return select(magnitude < min_normal, subnormal, normal) |
         ((code & word(static_cast<std::uint32_t>(numerics::sign_mask(f))))
          << static_cast<std::uint32_t>(31 - numerics::magnitude_bits(f)));
}

/// The loops over the elements of a chunk.
template <class Isa, class Source, class Target>
struct chunk_counter_lanes {
  using word = typename Isa::word;
  static constexpr int width = Source::spec().storage_bits;

  const quantized_chunk& c;
  chunk_pairs& pairs;

  SAMEBITS_INLINE void store_pair(std::int64_t i, word x, word restored) const {
    store<Isa>(pairs.x + i, x);
    store<Isa>(pairs.restored + i, restored);
  }
  [[nodiscard]] SAMEBITS_INLINE word scaled(std::int64_t i, word x) const {
    const word factor = load<Isa>(c.factors + i);
    return c.divide ? Isa::divide(x, factor) : Isa::multiply(x, factor);
  }

  /// Calls f(i, elements, codes) for the registers of the chunk; returns the number of padding
  /// elements in the last one: zeros of code 0.
  template <class Function>
  [[nodiscard]] SAMEBITS_INLINE std::uint64_t for_registers(const Function& f) const {
    const auto element = [](word in) __attribute__((always_inline)) {
      return numerics::decode<word>(Source::spec(), in);
    };
    std::int64_t i = 0;
    for (; i + word::count <= c.count; i += word::count) {
      f(i, element(load<Isa>(fixed_width<width>{}, c.in + i * (width / 8))),
        load<Isa>(fixed_width<8>{}, c.codes + i));
    }
    const std::int64_t left = c.count - i;
    if (left == 0) return 0;
    f(i, element(load_tail<Isa, width>(c.in + i * (width / 8), left, 0)),
      load_tail<Isa, 8>(c.codes + i, left, 0));
    return static_cast<std::uint64_t>(word::count - left);
  }

  /// Counts the elements of a chunk in which all numbers are finite and none saturates. Returns
  /// whether the chunk is one.
  bool count_ordinary(numerics::quantize_counts& total) const {
    const word zero = 0u;
    const word one = 1u;
    const word sign_off = ~numerics::binary32::sign_bit;
    word zeros = 0u, zero_codes = 0u, amax = 0u, scaled_amax = 0u, restored_amax = 0u;
    word min_below = ~0u;  // as in count_lanes
    const std::uint64_t padding =
        for_registers([&](std::int64_t i, word x, word code) __attribute__((always_inline)) {
          const word m = x & sign_off;
          zeros = zeros + select(m == zero, one, zero);
          amax = max_word(amax, m);
          min_below = min_word(min_below, m - one);
          scaled_amax = max_word(scaled_amax, scaled(i, x) & sign_off);
          const word restored =
              Isa::multiply(decode_finite<Isa, Target>(code), load<Isa>(c.scales + i));
          const word size = restored & sign_off;
          const auto to_zero = (code_magnitude<Target>(code) == zero) | (size == zero);
          zero_codes = zero_codes + select(to_zero, one, zero);
          restored_amax = max_word(restored_amax, size);
          store_pair(i, x, restored);
        });
    const std::uint32_t largest = Isa::largest(max_word(amax, restored_amax));
    if (largest >= numerics::binary32::inf || Isa::largest(scaled_amax) >= c.overflow_start) {
      return false;
    }
    const std::uint64_t n = sum_of_lanes<Isa>(zeros);
    total = {};
    total.zeros = n - padding;
    total.underflowed = sum_of_lanes<Isa>(zero_codes) - n;  // a zero has a zero code
    total.amax = Isa::largest(amax);
    total.min_nonzero = min_of<Isa>(min_below);
    return true;
  }

  /// Counts the elements of any chunk.
  void count_any(numerics::quantize_counts& total) const {
    count_lanes<Isa> counts;
    const std::uint64_t padding =
        for_registers([&](std::int64_t i, word x, word code) __attribute__((always_inline)) {
          const word restored =
              Isa::multiply(numerics::decode<word>(Target::spec(), code), load<Isa>(c.scales + i));
          const word pair =
              counts.add(x, scaled(i, x), code_magnitude<Target>(code), restored, c.overflow_start);
          store_pair(i, x & pair, restored & pair);
        });
    total = counts.total();
    total.zeros -= padding;
  }
};

/// Counts the elements of a chunk and writes the pairs whose squares are summed.
template <class Isa, class Source, class Target>
numerics::quantize_counts count_elements(const quantized_chunk& c, chunk_pairs& pairs) {
  const chunk_counter_lanes<Isa, Source, Target> counter{c, pairs};
  numerics::quantize_counts total;
  if (!counter.count_ordinary(total)) counter.count_any(total);
  return total;
}

/// Writes the sums of x^2 and of (x - restored)^2. Overwrites the pairs after the last element.
template <class Isa>
void sum_squares(chunk_pairs& pairs, std::int64_t count, double& signal, double& noise) {
  using partial_sums = typename Isa::partial_sums;
  constexpr std::int64_t block = tree_block<Isa>;
  constexpr auto blocks = static_cast<std::size_t>(numerics::chunk_elements / block);
  partial_sums signals[blocks];
  partial_sums noises[blocks];
  const std::int64_t n = (count + block - 1) / block;
  for (std::int64_t i = count; i < n * block; ++i) pairs.x[i] = pairs.restored[i] = 0;
  for (std::int64_t b = 0; b < n; ++b) {
    partial_sums x[Isa::count];
    partial_sums d[Isa::count];
#pragma GCC unroll 8
    for (int i = 0; i < Isa::count; ++i) {
      const auto load = [&](const std::uint32_t* from) __attribute__((always_inline)) {
        return Isa::template load_elements<format_id::fp32>(
            reinterpret_cast<const std::byte*>(from + b * block + i * Isa::count));
      };
      x[i] = load(pairs.x);
      d[i] = Isa::difference(x[i], load(pairs.restored));
    }
    signals[b] = Isa::fold(
        x, [](partial_sums even, partial_sums odd)
               __attribute__((always_inline)) { return Isa::sum_of_squares(even, odd); });
    noises[b] = Isa::fold(
        d, [](partial_sums even, partial_sums odd) __attribute__((always_inline)) {
          return Isa::sum(Isa::square(even), Isa::square(odd));
        });
  }
  signal = root_of_chunk<Isa>(signals, n);
  noise = root_of_chunk<Isa>(noises, n);
}

}  // namespace samebits::simd
