// The kernel of functions of the rule `exact` on lanes of binary64 numbers (`Reals`:
// reals_avx2.hpp, reals_avx512.hpp; `Isa`: 32-bit words of the same instruction set). Included by
// one file per instruction set, which defines nothing else. convert_kernel.hpp says what code may
// be used here.
//
// A chunk passes through memory between the steps: binary32 operands, binary64 results, codes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/dispatch/exact_function.hpp"
#include "numerics/bits/decode.hpp"
#include "numerics/functions/exact_function.hpp"
#include "samebits/core/config.hpp"

namespace samebits::simd {

namespace real = numerics::real;

/// Replaces codes of fp16 and bf16 by binary32 bits.
template <class Isa>
SAMEBITS_INLINE void widen_codes(format_id format, std::uint32_t* words, int count) {
  using lanes = typename Isa::word;
  if (format == format_id::fp32) return;
  for (int i = 0; i < count; i += lanes::count) {
    auto* const at = reinterpret_cast<std::byte*>(words + i);
    const lanes code = Isa::template load<32>(at);
    const lanes wide = format == format_id::bf16
                           ? code << 16u
                           : numerics::decode<lanes>(spec_of(format_id::fp16), code);
    Isa::template store<32>(at, wide);
  }
}

/// Replaces derivatives by their products with `grad`, binary32 numbers.
template <class Reals>
SAMEBITS_INLINE void multiply_gradients(const std::uint32_t* grad, std::uint64_t* y, int count) {
  for (int i = 0; i < count; i += Reals::count) {
    const Reals d = Reals::through_binary32(Reals::load_bits(y + i));
    Reals::store_bits(y + i, real::gradient_product(Reals::load_binary32(grad + i), d));
  }
}

/// Replaces binary64 results by codes of fp32, rounded to nearest even by the processor.
template <class Reals>
SAMEBITS_INLINE void round_to_binary32(std::uint64_t* y, int count) {
  const Reals nan = std::uint64_t{0x7FFFFFFF};
  for (int i = 0; i < count; i += Reals::count) {
    const Reals code = Reals::binary32_bits(Reals::load_bits(y + i));
    Reals::store_bits(y + i, select((code & nan) > Reals(std::uint64_t{0x7F800000}), nan, code));
  }
}

/// Replaces binary64 results by codes of a format.
template <class Reals, format_id To, rounding Mode>
SAMEBITS_INLINE void round_to(overflow on_overflow, const std::uint64_t* dither, std::uint64_t* y,
                              int count) {
  const cast_rule rule{Mode, on_overflow, nan_policy::canonical};
  for (int i = 0; i < count; i += Reals::count) {
    const Reals value = Reals::load_bits(y + i);
    const Reals random =
        Mode == rounding::stochastic ? Reals::load_bits(dither + i) : Reals(std::uint64_t{0});
    Reals::store_bits(y + i, real::destination_code<Reals>(spec_of(To), rule, value, random));
  }
}
template <class Reals, format_id To>
SAMEBITS_INLINE void round_to(const cast_rule& rule, const std::uint64_t* dither, std::uint64_t* y,
                              int count) {
  if (rule.round == rounding::stochastic) {
    round_to<Reals, To, rounding::stochastic>(rule.on_overflow, dither, y, count);
  } else {
    round_to<Reals, To, rounding::nearest_even>(rule.on_overflow, dither, y, count);
  }
}

/// exact_codes of backends/dispatch/exact_function.hpp.
template <class Isa, class Reals>
SAMEBITS_INLINE void exact_codes_of(const backends::exact_call& call, backends::exact_chunk& chunk,
                                    int count) {
  std::uint64_t* const y = chunk.y;
  widen_codes<Isa>(call.in.format, chunk.x, count);
  real::with_function(call.f, [&]<real::exact_function F>() {
    for (int i = 0; i < count; i += Reals::count) {
      Reals::store_bits(y + i, real::value_at<F>(Reals::load_binary32(chunk.x + i)));
    }
  });
  if (call.grad.data != nullptr) {
    widen_codes<Isa>(call.grad.format, chunk.grad, count);
    multiply_gradients<Reals>(chunk.grad, y, count);
  }
  switch (call.out.format) {
    case format_id::fp16:
      return round_to<Reals, format_id::fp16>(call.rule, chunk.dither, y, count);
    case format_id::bf16:
      return round_to<Reals, format_id::bf16>(call.rule, chunk.dither, y, count);
    case format_id::e4m3:
      return round_to<Reals, format_id::e4m3>(call.rule, chunk.dither, y, count);
    case format_id::e5m2:
      return round_to<Reals, format_id::e5m2>(call.rule, chunk.dither, y, count);
    default: break;
  }
  if (call.rule.on_overflow == overflow::ieee) return round_to_binary32<Reals>(y, count);
  round_to<Reals, format_id::fp32, rounding::nearest_even>(call.rule.on_overflow, chunk.dither, y,
                                                           count);
}

}  // namespace samebits::simd
