// Fused elements: elementwise operators of PyTorch 2.11 one after another, in one pass; and dropout.
//
// Each operator of the composition rounds its result to the tensors' format, as its kernel does.
// Dropout (random bits by element index) and fake quantization have this library's own rules.
#pragma once

#include <cstdint>

#include "numerics/hardware/cuda_functions/steps.hpp"
#include "numerics/hardware/evaluate.hpp"
#include "numerics/hardware/torch_operators/tensor_format.hpp"
#include "samebits/core/config.hpp"
#include "samebits/core/format.hpp"
#include "samebits/core/function.hpp"

namespace samebits::numerics::torch_2_11 {

/// A composition: its operands, and its results.
enum class fused : std::uint8_t {
  gated,               ///< gate, up: f(gate) * up
  gated_gradient,      ///< grad, gate, up: the gradients of gate and up
  biased,              ///< x, bias: f(x + bias)
  biased_gradient,     ///< grad, x, bias: the gradient of x and of bias, before its sum over rows
  rotation,            ///< first, second, cos, sin: both halves of x * cos + rotate_half(x) * sin
  rotation_gradient,   ///< the halves of grad, cos, sin: those of the gradient of x
  scaled,              ///< x: x * scale
  scaled_sum,          ///< x, y: x * scale + y
  dropout,             ///< x: x * scale where it is kept, else +0
  clip_fake_quantize,  ///< x, clip: the nearest of 2 * scale + 1 numbers from -clip to clip
  clip_fake_quantize_gradient,  ///< grad, x, clip: the gradient of x, and what x adds to that of clip
};
inline constexpr int fused_count = 11;

inline constexpr int max_fused_operands = 4;
inline constexpr int max_fused_results = 2;

SAMEBITS_INLINE constexpr int operands_of(fused f) {
  switch (f) {
    case fused::gated:
    case fused::biased:
    case fused::scaled_sum:
    case fused::clip_fake_quantize: return 2;
    case fused::gated_gradient:
    case fused::clip_fake_quantize_gradient:
    case fused::biased_gradient: return 3;
    case fused::rotation:
    case fused::rotation_gradient: return 4;
    default: return 1;
  }
}
SAMEBITS_INLINE constexpr int results_of(fused f) {
  const bool two = f == fused::gated_gradient || f == fused::rotation ||
                   f == fused::rotation_gradient || f == fused::clip_fake_quantize_gradient;
  return two ? 2 : 1;
}

/// Random bits of an element that dropout compares.
inline constexpr int dropout_bits = 24;

/// A composition, ready to be applied to many elements.
struct fused_plan {
  fused of;
  function_plan f;                        ///< the function of gated and biased; the format of all
  std::uint32_t scale = torch_2_11::one;  ///< binary32
  std::uint32_t dropped = 0;              ///< elements whose random bits are below are dropped
};

/// The plan of dropout with a probability from 0 to 1, binary32.
SAMEBITS_HD constexpr fused_plan dropout_plan(format_id format, std::uint32_t probability) {
  constexpr std::uint32_t whole = 0x4B800000u;  // 2^24
  const std::uint32_t kept = ptx::sub(std::uint32_t{torch_2_11::one}, probability);
  return {fused::dropout,
          {function_rule::torch_2_11, function::silu, format, 0, {}, {}},
          ptx::div(std::uint32_t{torch_2_11::one}, kept),
          ptx::to_int(ptx::mul(probability, whole))};
}

/// a * cos + b * sin, where each product is rounded to the format; b's product becomes a gradient
/// that autograd adds to zeros if `Gradient`, so that it is never -0.
template <bool Gradient, class Numbers, class Word>
SAMEBITS_HD constexpr Word rotated(const Numbers& numbers, Word a, Word cos, Word b, Word sin) {
  Word product = numbers.stored(mul(b, sin));
  if (Gradient) product = add(product, Word(0u));
  return add(numbers.stored(mul(a, cos)), product);
}

/// The nearest of the numbers i / levels * clip, |i| <= levels.
template <class Word>
SAMEBITS_HD constexpr Word fake_quantized(Word x, Word clip, Word levels) {
  const Word top = Word(one), bottom = neg(top);
  Word part = div(x, clip);
  part = select(lt(top, part), top, part);
  part = select(lt(part, bottom), bottom, part);
  return mul(div(nearest_whole(mul(part, levels)), levels), clip);
}

/// Computes y from the operands x. All are binary32 bits; the caller rounds y to the format.
///
/// @param random  dropout_bits random bits
template <class Numbers, class Word>
SAMEBITS_HD constexpr void evaluate_fused(const fused_plan& plan, const Numbers& numbers,
                                          const Word (&x)[max_fused_operands], Word random,
                                          Word (&y)[max_fused_results]) {
  switch (plan.of) {
    case fused::gated: y[0] = mul(numbers.stored(evaluate(plan.f, x[0])), x[1]); return;
    case fused::gated_gradient:
      y[0] = evaluate_gradient(plan.f, numbers.stored(mul(x[0], x[2])), x[1]);
      y[1] = mul(x[0], numbers.stored(evaluate(plan.f, x[1])));
      return;
    case fused::biased: y[0] = evaluate(plan.f, numbers.stored(add(x[0], x[1]))); return;
    case fused::biased_gradient:
      y[0] = evaluate_gradient(plan.f, x[0], numbers.stored(add(x[1], x[2])));
      return;
    case fused::rotation:
      y[0] = rotated<false>(numbers, x[0], x[2], neg(x[1]), x[3]);
      y[1] = rotated<false>(numbers, x[1], x[2], x[0], x[3]);
      return;
    case fused::rotation_gradient:
      y[0] = rotated<true>(numbers, x[0], x[2], x[1], x[3]);
      y[1] = rotated<true>(numbers, x[1], x[2], neg(x[0]), x[3]);
      return;
    case fused::scaled: y[0] = mul(x[0], Word(plan.scale)); return;
    case fused::scaled_sum: y[0] = add(numbers.stored(mul(x[0], Word(plan.scale))), x[1]); return;
    case fused::dropout:
      y[0] = select(random < Word(plan.dropped), Word(0u), mul(x[0], Word(plan.scale)));
      return;
    case fused::clip_fake_quantize: y[0] = fake_quantized(x[0], x[1], Word(plan.scale)); return;
    case fused::clip_fake_quantize_gradient: {
      const mask_of<Word> above = lt(x[2], x[1]), below = lt(x[1], neg(x[2]));
      y[0] = select(above | below, Word(0u), x[0]);
      y[1] = select(above, x[0], select(below, neg(x[0]), Word(0u)));
      return;
    }
  }
}

}  // namespace samebits::numerics::torch_2_11
