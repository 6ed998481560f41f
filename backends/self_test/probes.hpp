// Probes: binary32 and binary64 operations whose results change under a wrong flag or processor
// state.
//
// One translation unit per set of flags includes this file. The probes are thus compiled with the
// flags of the kernels that they test. All names are local to the translation unit. Expected
// results are computed in integers only.
#pragma once

#include <cstdint>

#include "backends/self_test/build_flags.hpp"
#include "backends/self_test/probe_report.hpp"
#include "samebits/core/config.hpp"

namespace samebits::backends {
// The anonymous namespace gives each set of flags its own copy.
namespace {  // NOLINT(cert-dcl59-cpp,google-build-namespaces)

template <class T>
struct probe_layout;
template <>
struct probe_layout<float> {
  using word = std::uint32_t;
  static constexpr int digits = 24;
  static constexpr int bias = 127;
};
template <>
struct probe_layout<double> {
  using word = std::uint64_t;
  static constexpr int digits = 53;
  static constexpr int bias = 1023;
};

/// Hides a value from the compiler.
template <class T>
SAMEBITS_HD T opaque(T x) {
  volatile T hidden = x;
  return hidden;
}

SAMEBITS_HD inline float square_root_of(float x) { return __builtin_sqrtf(x); }
SAMEBITS_HD inline double square_root_of(double x) { return __builtin_sqrt(x); }

/// The probes of one floating-point type.
template <class T>
class prober {
 public:
  SAMEBITS_HD explicit prober(probe_report& report) : report_(report) {}

  SAMEBITS_HD void contraction() {
    // (1 + e)^2 = 1 + 2e + e^2 rounds to 1 + 2e; a fused operation keeps e^2.
    constexpr T e = digits == 24 ? T(0x1p-13) : T(0x1p-27);
    const T x = T(1) + e;
    const T square = T(1) + 2 * e;
    // Each product is used once: compilers do not fuse a product that has other uses.
    expect(probe::contraction, opaque(x) * opaque(x) + opaque(-square), 0);
    expect(probe::contraction, opaque(x) * opaque(x) - opaque(square), 0);
    expect(probe::contraction, opaque(square) - opaque(x) * opaque(x), 0);
  }

  SAMEBITS_HD void flush_to_zero() {
    const T normal = opaque(of_bits(min_normal));
    const T more = opaque(of_bits(min_normal + min_normal / 2));
    const T two = opaque(T(2));
    const T half = opaque(T(0.5));
    expect(probe::flush_to_zero, normal * half, min_normal / 2);
    expect(probe::flush_to_zero, more - normal, min_normal / 2);
    expect(probe::flush_to_zero, normal / two, min_normal / 2);
  }

  SAMEBITS_HD void denormals_are_zero() {
    const T tiny = opaque(of_bits(1));
    const T normal = opaque(of_bits(min_normal));
    const T scale = opaque(power(digits));
    expect(probe::denormals_are_zero, tiny * scale, 2 * min_normal);
    expect(probe::denormals_are_zero, normal + tiny, min_normal + 1);
    expect(probe::denormals_are_zero, tiny > T(0));
  }

  SAMEBITS_HD void rounding_direction() {
    const T one = opaque(T(1));
    const T next = opaque(of_bits(bits_of(T(1)) + 1));
    const T minus_one = opaque(T(-1));
    const T half = opaque(power(-digits));  // half the distance from 1 to the next number
    const T quarter = opaque(power(-digits - 1));
    const T three_quarters = opaque(T(1.5) * power(-digits));
    expect(probe::rounding_direction, one + three_quarters, bits_of(T(1)) + 1);
    expect(probe::rounding_direction, one + quarter, bits_of(T(1)));
    expect(probe::rounding_direction, minus_one - quarter, bits_of(T(-1)));
    expect(probe::rounding_direction, one + half, bits_of(T(1)));
    expect(probe::rounding_direction, next + half, bits_of(T(1)) + 2);
  }

  SAMEBITS_HD void division() {
    for (int i = 0; i < samples; ++i) {
      const word mx = significand();
      const word my = significand();
      expect(probe::division, in_binade(mx) / in_binade(my), quotient(mx, my));
    }
  }

  SAMEBITS_HD void reciprocal() {
    // A constant divisor and a divisor shared by several quotients both invite x * (1 / y).
    constexpr word three_halves = word{3} << (digits - 2);
    constexpr int sharing = 4;
    for (int i = 0; i < samples; i += sharing) {
      const word divisor = significand();
      const T y = in_binade(divisor);
      word significands[sharing];
      T quotients[sharing];
      for (word& m : significands) m = significand();
      for (int k = 0; k < sharing; ++k) quotients[k] = in_binade(significands[k]) / y;
      for (int k = 0; k < sharing; ++k) {
        const word m = significands[k];
        expect(probe::reciprocal, quotients[k], quotient(m, divisor));
        expect(probe::reciprocal, in_binade(m) / T(1.5), quotient(m, three_halves));
      }
    }
  }

  SAMEBITS_HD void square_root() {
    for (int i = 0; i < samples; ++i) {
      const word m = significand();
      const int exponent = i % 2;
      const T x = exponent == 0 ? in_binade(m) : 2 * in_binade(m);
      expect(probe::square_root, square_root_of(x), root(m, exponent));
    }
  }

  SAMEBITS_HD void reassociation() {
    const T one = opaque(T(1));
    const T big = opaque(power(digits + 1));
    expect(probe::reassociation, (one + big) - big, 0);
    // 2^digits + 1 is a tie that rounds back to 2^digits, unless the ones are added first.
    constexpr int count = 16;
    T terms[count];
    terms[0] = opaque(power(digits));
    for (int i = 1; i < count; ++i) terms[i] = opaque(T(1));
    T sum = 0;
    for (const T term : terms) sum += term;
    expect(probe::reassociation, sum, bits_of(power(digits)));
  }

  SAMEBITS_HD void nan() {
    const T x = opaque(of_bits(infinity + min_normal / 2));
    const T inf = opaque(of_bits(infinity));
    expect(probe::nan, x != x);  // NOLINT(misc-redundant-expression): true of a NaN alone
    expect(probe::nan, !(x < T(0)) && !(x >= T(0)));
    const T difference = inf - inf;  // NOLINT(misc-redundant-expression): not zero
    expect(probe::nan, (bits_of(difference) & magnitude) > infinity);
  }

  SAMEBITS_HD void signed_zero() {
    const T zero = opaque(T(0));
    const T minus_zero = opaque(-T(0));
    expect(probe::signed_zero, minus_zero + T(0), 0);
    expect(probe::signed_zero, T(0) - zero, 0);
  }

  SAMEBITS_HD void excess_precision() {
    const T maximum = opaque(of_bits(infinity - 1));
    const T two = opaque(T(2));
    const T half = opaque(T(0.5));
    expect(probe::excess_precision, (maximum * two) * half, infinity);
  }

  /// The probes that depend on the processor's control register.
  SAMEBITS_HD void processor_state() {
    flush_to_zero();
    denormals_are_zero();
    rounding_direction();
  }

  SAMEBITS_HD void all() {
    contraction();
    processor_state();
    division();
    reciprocal();
    square_root();
    reassociation();
    nan();
    signed_zero();
    excess_precision();
  }

 private:
  using word = typename probe_layout<T>::word;
  using wide = unsigned __int128;
  static constexpr int digits = probe_layout<T>::digits;
  static constexpr int bias = probe_layout<T>::bias;
  // An approximation is wrong for a large share of random inputs.
  static constexpr int samples = 128;
  static constexpr word min_normal = word{1} << (digits - 1);
  static constexpr word infinity = (word{2} * bias + 1) << (digits - 1);
  static constexpr word magnitude = static_cast<word>(~word{0}) >> 1;

  SAMEBITS_HD static word bits_of(T x) { return __builtin_bit_cast(word, x); }
  SAMEBITS_HD static T of_bits(word w) { return __builtin_bit_cast(T, w); }
  SAMEBITS_HD static word exponent_field(int exponent) {
    return static_cast<word>(bias + exponent) << (digits - 1);
  }
  SAMEBITS_HD static T power(int exponent) { return of_bits(exponent_field(exponent)); }

  /// The next random significand, with its leading bit set.
  SAMEBITS_HD word significand() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;  // Knuth's MMIX generator
    return min_normal | static_cast<word>(state_ >> (64 - (digits - 1)));
  }
  /// The number in [1, 2) with this significand.
  SAMEBITS_HD static T in_binade(word m) { return of_bits(exponent_field(0) | (m - min_normal)); }

  /// Rounds r, which has digits + 1 bits, by its last bit. Exact ties cannot occur here.
  SAMEBITS_HD static word rounded(word r, int exponent) {
    return exponent_field(exponent) + (r / 2 + r % 2 - min_normal);
  }
  /// Bits of the correctly rounded quotient of two significands.
  SAMEBITS_HD static word quotient(word mx, word my) {
    const int exponent = mx >= my ? 0 : -1;
    return rounded(static_cast<word>((wide{mx} << (digits - exponent)) / my), exponent);
  }
  /// Bits of the correctly rounded square root of 2^exponent times a significand. The exponent is 0
  /// or 1.
  SAMEBITS_HD static word root(word m, int exponent) {
    const wide square = wide{m} << (digits + 1 + exponent);
    word r = 0;
    for (word bit = word{1} << digits; bit != 0; bit >>= 1) {
      const word tried = r | bit;
      if (wide{tried} * tried <= square) r = tried;
    }
    return rounded(r, 0);
  }

  SAMEBITS_HD void expect(probe which, T got, word expected) {
    note(which, bits_of(got), expected, 8 * static_cast<int>(sizeof(T)));
  }
  SAMEBITS_HD void expect(probe which, bool holds) { note(which, holds ? 1 : 0, 1, 1); }
  SAMEBITS_HD void note(probe which, std::uint64_t got, std::uint64_t expected, int bits) {
    probe_outcome& outcome = report_.of[static_cast<int>(which)];
    if (got != expected && outcome.bits == 0) outcome = {got, expected, bits};
  }

  probe_report& report_;
  std::uint64_t state_ = opaque(std::uint64_t{1});
};

/// Runs all probes under the flags of the including file.
template <class Report>
SAMEBITS_HD void run_probes(Report& report) {
  report = {};
  prober<float>(report).all();
  prober<double>(report).all();
}

/// Runs the probes that the processor's control register can change.
template <class Report>
SAMEBITS_HD void run_processor_probes(Report& report) {
  report = {};
  prober<float>(report).processor_state();
  prober<double>(report).processor_state();
}

}  // namespace
}  // namespace samebits::backends
