// Attention on SIMD lanes (`Isa`: steps_avx2.hpp, steps_avx512.hpp): numbers packed for the 32-bit
// lanes of backends/simd/matmul/matmul_kernel.hpp, and the policy of attention_kernel.hpp.
// Included by one file per instruction set, which defines nothing else. convert_kernel.hpp says
// what code may be used here.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/dispatch/calls/attention.hpp"
#include "backends/simd/lanes/access.hpp"
#include "backends/simd/matmul/matmul_kernel.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"

namespace samebits::simd {

using backends::attention_step;

/// A number of fp16 or bf16 as the kernel multiplies it.
template <class Lanes>
struct lane_operand {
  Lanes significand;  ///< shifted up by its half of the alignment
  Lanes exponent;
  Lanes sign;  ///< in the top bit
};

enum class operand_side : std::uint8_t { a, b };

template <class Lanes>
SAMEBITS_INLINE lane_operand<Lanes> operand_of(format_id format, operand_side side, Lanes code) {
  constexpr int alignment_bits = 25;
  const bool half = format == format_id::fp16;
  const std::uint32_t mantissa = half ? 10 : 7, bias = half ? 15 : 127;
  const std::uint32_t up = alignment_bits - 2 * mantissa;
  const std::uint32_t shift = side == operand_side::b ? up / 2 : up - up / 2;
  const Lanes magnitude = code & Lanes(0x7FFFu);
  const Lanes field = magnitude >> Lanes(mantissa);
  const auto subnormal = field == Lanes(0u);
  const Lanes fraction = magnitude & Lanes((1u << mantissa) - 1);
  const Lanes significand = fraction | select(subnormal, Lanes(0u), Lanes(1u << mantissa));
  const Lanes exponent = select(subnormal, Lanes(1u), field) - Lanes(bias);
  constexpr auto none = static_cast<std::uint32_t>(backends::no_exponent);
  return {significand << Lanes(shift), select(magnitude == Lanes(0u), Lanes(none), exponent),
          (code & Lanes(0x8000u)) << Lanes(16u)};
}

/// Policy of attention_kernel.hpp.
template <class Isa>
struct attention_lanes {
  using word = typename Isa::word;
  static constexpr int columns = word::count;
  static constexpr int a_words = 3 * attention_step, b_words = 2 * attention_step * columns;

  SAMEBITS_INLINE static word load(const std::uint32_t* p) { return simd::load<Isa>(p); }
  SAMEBITS_INLINE static void store(std::uint32_t* p, word x) { simd::store<Isa>(p, x); }
  SAMEBITS_INLINE static void put(format_id format, std::uint32_t* words, int p, word code) {
    const auto x = operand_of<word>(format, operand_side::b, code);
    store(words + 2 * p * columns, x.significand | x.sign);
    store(words + (2 * p + 1) * columns, x.exponent);
  }
  SAMEBITS_INLINE static auto is_special(format_id format, word code) {
    const word largest = format == format_id::fp16 ? 0x7BFFu : 0x7F7Fu;
    return (code & word(0x7FFFu)) > largest;
  }
  template <class Mask>
  SAMEBITS_INLINE static bool is_any(Mask m) {
    return any(m);
  }
};

/// attention_kernels::pack_a
template <class Isa>
SAMEBITS_INLINE bool pack_attention_a(format_id format, const std::uint32_t* codes,
                                      std::uint32_t* words) {
  using policy = attention_lanes<Isa>;
  using lanes = typename Isa::word;
  lanes special = 0u;
  for (int p = 0; p < attention_step; p += lanes::count) {
    const lanes code = policy::load(codes + p);
    const auto x = operand_of<lanes>(format, operand_side::a, code);
    policy::store(words + p, x.significand);
    policy::store(words + attention_step + p, x.exponent);
    policy::store(words + 2 * attention_step + p, x.sign);
    special = select(policy::is_special(format, code), lanes(1u), special);
  }
  return policy::is_any(special == lanes(1u));
}

/// attention_kernels::pack_b
template <class Isa>
SAMEBITS_INLINE bool pack_attention_b(format_id format, const std::uint32_t* codes,
                                      std::uint32_t* words, int column) {
  using policy = attention_lanes<Isa>;
  using lanes = typename Isa::word;
  alignas(64) std::uint32_t packed[2][attention_step];
  lanes special = 0u;
  for (int p = 0; p < attention_step; p += lanes::count) {
    const lanes code = policy::load(codes + p);
    const auto x = operand_of<lanes>(format, operand_side::b, code);
    policy::store(packed[0] + p, x.significand | x.sign);
    policy::store(packed[1] + p, x.exponent);
    special = select(policy::is_special(format, code), lanes(1u), special);
  }
  for (int p = 0; p < attention_step; ++p) {
    words[2 * p * policy::columns + column] = packed[0][p];
    words[(2 * p + 1) * policy::columns + column] = packed[1][p];
  }
  return policy::is_any(special == lanes(1u));
}

/// attention_kernels::multiply by a kernel of matrix products, with Hopper's tensor core.
SAMEBITS_INLINE void multiply_attention(const backends::matmul_kernel& by,
                                        const backends::attention_product& p) {
  constexpr int alignment_bits = 25, fraction_bits = 23, floor = -133;
  by.wide({p.a, p.b, p.sums, p.rows, attention_step, alignment_bits, fraction_bits, floor});
}

}  // namespace samebits::simd
