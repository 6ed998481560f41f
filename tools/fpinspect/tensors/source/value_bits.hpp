// The bits of float and double, by which loops over elements classify them.
#pragma once

#include <bit>
#include <cstdint>

namespace fpinspect {

/// Words and fields of a float or a double.
template <class Value>
struct value_fields;
template <>
struct value_fields<float> {
  using word = std::int32_t;
  static constexpr int fraction_bits = 23;
  static constexpr int exponent_bits = 8;
};
template <>
struct value_fields<double> {
  using word = std::int64_t;
  static constexpr int fraction_bits = 52;
  static constexpr int exponent_bits = 11;
};

/// Signed: SSE2 compares and selects the largest of signed 32-bit words alone.
template <class Value>
using word_of = typename value_fields<Value>::word;

/// The bits without the sign. Magnitudes have the order of these words, which are never negative.
template <class Value>
constexpr word_of<Value> magnitude_word(Value x) {
  constexpr auto all = static_cast<word_of<Value>>(~std::uint64_t{0} >> 1 >> (64 - 8 * sizeof x));
  return std::bit_cast<word_of<Value>>(x) & all;
}

template <class Value>
constexpr word_of<Value> infinity_word =
    ((word_of<Value>{1} << value_fields<Value>::exponent_bits) - 1)
    << value_fields<Value>::fraction_bits;

}  // namespace fpinspect
