// The kernel of functions of the rule `exact` on lanes of binary64 numbers (`Reals`:
// reals_avx2.hpp, reals_avx512.hpp; `Isa`: 32-bit words of the same instruction set). Included by
// one file per instruction set, which defines nothing else. convert_kernel.hpp says what code may
// be used here.
//
// A chunk passes through memory between the steps: binary32 operands, binary64 numbers, codes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/dispatch/calls/evaluate.hpp"
#include "backends/dispatch/visit.hpp"
#include "backends/simd/lanes/access.hpp"
#include "numerics/bits/decode.hpp"
#include "numerics/bits/encode.hpp"
#include "numerics/functions/exact_function.hpp"
#include "numerics/functions/fast_values.hpp"
#include "samebits/core/config.hpp"

namespace samebits::simd {

namespace real = numerics::real;
using backends::function_chunk;

/// Replaces codes of fp16 and bf16 by binary32 bits.
template <class Isa>
SAMEBITS_INLINE void widen_codes(format_id format, std::uint32_t* words, int count) {
  using lanes = typename Isa::word;
  if (format == format_id::fp32) return;
  for (int i = 0; i < count; i += lanes::count) {
    const lanes code = load<Isa>(words + i);
    const lanes wide = format == format_id::bf16
                           ? code << 16u
                           : numerics::decode<lanes>(spec_of(format_id::fp16), code);
    store<Isa>(words + i, wide);
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

/// Stores the binary64 results of the definition.
template <class Reals, real::exact_function F>
SAMEBITS_NOINLINE void define(const std::uint32_t* x, std::uint64_t* y, int count) {
  for (int i = 0; i < count; i += Reals::count) {
    Reals::store_bits(y + i, real::value_at<F>(Reals::load_binary32(x + i)));
  }
}

/// Stores binary64 numbers that round to nearest like the exact results: fast values, and results
/// of the definition for a vector in which a fast value is not decided.
template <class Reals, real::exact_function F>
SAMEBITS_NOINLINE void define_to_nearest(const std::uint32_t* x, std::uint64_t* y, int count) {
  for (int i = 0; i < count; i += Reals::count) {
    const Reals operand = Reals::load_binary32(x + i);
    const Reals fast = real::fast_value<F>(operand);
    Reals::store_bits(y + i, fast);
    if (any(!(real::is_fast_operand<F>(operand) & real::is_decided(fast)))) [[unlikely]] {
      define<Reals, F>(x + i, y + i, Reals::count);
    }
  }
}

/// Stores codes of fp32, rounded to nearest even by the processor.
template <class Reals>
SAMEBITS_INLINE void round_to_binary32(const std::uint64_t* y, std::uint32_t* codes, int count) {
  const Reals nan = std::uint64_t{0x7FFFFFFF};
  for (int i = 0; i < count; i += Reals::count) {
    const Reals code = Reals::binary32_bits(Reals::load_bits(y + i));
    const Reals canonical = select((code & nan) > Reals(std::uint64_t{0x7F800000}), nan, code);
    Reals::store_words(codes + i, canonical);
  }
}

/// Stores codes of fp32, rounded to odd. Rounding these codes to nearest into a format of at most 22
/// significant bits gives y rounded once. A NaN may have any NaN code.
template <class Reals>
SAMEBITS_INLINE void round_to_odd(const std::uint64_t* y, std::uint32_t* codes, int count) {
  const Reals bit = std::uint64_t{1};
  for (int i = 0; i < count; i += Reals::count) {
    const Reals value = Reals::load_bits(y + i);
    const Reals code = Reals::binary32_bits(value);
    const Reals rounded = Reals::through_binary32(value);
    const Reals down = select(real::magnitude(rounded) > real::magnitude(value), code - bit, code);
    Reals::store_words(codes + i, select(rounded == value, code, down | bit));
  }
}

/// Stores codes of a format, rounded to nearest even through `codes`.
template <class Isa, class Reals, format_id To>
SAMEBITS_INLINE void round_to_nearest(overflow on_overflow, const std::uint64_t* y,
                                      std::uint32_t* codes, int count) {
  using lanes = typename Isa::word;
  const cast_rule rule{rounding::nearest_even, on_overflow, nan_policy::canonical};
  round_to_odd<Reals>(y, codes, count);
  for (int i = 0; i < count; i += lanes::count) {
    const lanes wide = load<Isa>(codes + i);
    store<Isa>(codes + i, numerics::encode<lanes>(spec_of(To), rule, wide, 0u).code);
  }
}

/// Stores codes of a format, rounded from binary64.
template <class Reals, format_id To, rounding Mode>
SAMEBITS_INLINE void round_once(overflow on_overflow, function_chunk& chunk, int count) {
  const cast_rule rule{Mode, on_overflow, nan_policy::canonical};
  for (int i = 0; i < count; i += Reals::count) {
    const Reals value = Reals::load_bits(chunk.y + i);
    const Reals random =
        Mode == rounding::stochastic ? Reals::load_bits(chunk.dither + i) : Reals(std::uint64_t{0});
    Reals::store_words(chunk.codes + i,
                       real::destination_code<Reals>(spec_of(To), rule, value, random));
  }
}

template <class Isa, class Reals, format_id To>
SAMEBITS_INLINE void round_to(const cast_rule& rule, function_chunk& chunk, int count) {
  if (rule.rounding == rounding::stochastic) {
    round_once<Reals, To, rounding::stochastic>(rule.overflow, chunk, count);
  } else {
    round_to_nearest<Isa, Reals, To>(rule.overflow, chunk.y, chunk.codes, count);
  }
}

/// Computes chunk.y, from which rounding gives the results of the call.
template <class Reals>
SAMEBITS_INLINE void compute(const backends::evaluate_call& call, function_chunk& chunk,
                             int count) {
  const bool to_nearest = call.rule.rounding == rounding::nearest_even && call.grad.data == nullptr;
  real::with_function(call.exact, [&]<real::exact_function F>() {
    if constexpr (real::has_fast_value(F)) {
      if (to_nearest) return define_to_nearest<Reals, F>(chunk.x, chunk.y, count);
    }
    define<Reals, F>(chunk.x, chunk.y, count);
  });
}

/// function_codes of backends/dispatch/calls/evaluate.hpp, of the rule `exact`.
template <class Isa, class Reals>
SAMEBITS_INLINE void exact_codes_of(const backends::evaluate_call& call, function_chunk& chunk,
                                    int count) {
  widen_codes<Isa>(call.in.format, chunk.x, count);
  compute<Reals>(call, chunk, count);
  if (call.grad.data != nullptr) {
    widen_codes<Isa>(call.grad.format, chunk.grad, count);
    multiply_gradients<Reals>(chunk.grad, chunk.y, count);
  }
  backends::with_list_format(call.out.format, [&]<format_id To>() {
    if constexpr (To != format_id::fp32) {
      round_to<Isa, Reals, To>(call.rule, chunk, count);
    } else if (call.rule.overflow == overflow::ieee) {
      round_to_binary32<Reals>(chunk.y, chunk.codes, count);
    } else {
      round_once<Reals, To, rounding::nearest_even>(call.rule.overflow, chunk, count);
    }
  });
}

}  // namespace samebits::simd
