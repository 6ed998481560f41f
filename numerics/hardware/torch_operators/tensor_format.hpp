// Tensor format: how PyTorch's operators round binary32 results to the format of a tensor.
#pragma once

#include <cstdint>

#include "numerics/bits/decode.hpp"
#include "numerics/bits/encode.hpp"
#include "numerics/bits/word.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/rounding.hpp"

namespace samebits::numerics::torch_2_11 {

/// binary32 bits of a code of fp32, fp16 or bf16.
template <class Word>
SAMEBITS_HD constexpr Word value_of(format_id format, Word code) {
  if (format == format_id::fp16) return decode<Word>(spec_of(format_id::fp16), code);
  if (format == format_id::bf16) return code << 16u;
  return code;
}

/// The code of binary32 bits in fp32, fp16 or bf16, rounded to nearest even. Every NaN gives the
/// canonical NaN.
template <class Word>
SAMEBITS_HD constexpr Word code_of(format_id format, Word value) {
  constexpr cast_rule rule{};
  if (format == format_id::fp16) {
    return encode<Word>(spec_of(format_id::fp16), rule, value, Word(0u)).code;
  }
  if (format == format_id::bf16) {
    return encode<Word>(spec_of(format_id::bf16), rule, value, Word(0u)).code;
  }
  const Word nan = binary<std::uint32_t>::nan;
  return select((value & nan) > Word(binary<std::uint32_t>::inf), nan, value);
}

/// A value as a tensor of this format holds it.
template <class Word>
SAMEBITS_HD constexpr Word stored(format_id format, Word value) {
  if (format == format_id::fp32) return value;
  return value_of(format, code_of(format, value));
}

/// How tensors of a format hold numbers: `Numbers` of evaluate_fused().
template <class Word>
struct tensor_numbers {
  using word = Word;
  format_id format;

  [[nodiscard]] SAMEBITS_HD constexpr Word value(Word code) const { return value_of(format, code); }
  [[nodiscard]] SAMEBITS_HD constexpr Word stored(Word x) const {
    return torch_2_11::stored(format, x);
  }
  [[nodiscard]] SAMEBITS_HD constexpr Word code(Word x) const { return code_of(format, x); }
};

}  // namespace samebits::numerics::torch_2_11
