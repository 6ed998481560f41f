// Every instruction of the function unit probe, as a list for macros: its name; its name in PTX; the bits
// of its operand and result; the lowest compute capability that has it; and its model. Instructions of 16
// bits compute one number in the low half of a word, or two in both halves.
#pragma once

// clang-format off
#define SAMEBITS_FUNCTION_UNIT_INSTRUCTIONS(ONE) \
  ONE(ex2_ftz, "ex2.approx.ftz.f32", 32, 75, hopper::ex2_approx_ftz) \
  ONE(ex2, "ex2.approx.f32", 32, 75, hopper::ex2_approx) \
  ONE(lg2_ftz, "lg2.approx.ftz.f32", 32, 75, hopper::lg2_approx_ftz) \
  ONE(lg2, "lg2.approx.f32", 32, 75, hopper::lg2_approx) \
  ONE(rcp_ftz, "rcp.approx.ftz.f32", 32, 75, hopper::rcp_approx_ftz) \
  ONE(rcp, "rcp.approx.f32", 32, 75, hopper::rcp_approx) \
  ONE(rsqrt_ftz, "rsqrt.approx.ftz.f32", 32, 75, hopper::rsqrt_approx_ftz) \
  ONE(rsqrt, "rsqrt.approx.f32", 32, 75, hopper::rsqrt_approx) \
  ONE(sqrt_ftz, "sqrt.approx.ftz.f32", 32, 75, hopper::sqrt_approx_ftz) \
  ONE(sqrt, "sqrt.approx.f32", 32, 75, hopper::sqrt_approx) \
  ONE(sin_ftz, "sin.approx.ftz.f32", 32, 75, hopper::sin_approx_ftz) \
  ONE(cos_ftz, "cos.approx.ftz.f32", 32, 75, hopper::cos_approx_ftz) \
  ONE(tanh, "tanh.approx.f32", 32, 75, hopper::tanh_approx) \
  ONE(ex2_f16, "ex2.approx.f16", 16, 75, hopper::ex2_approx_f16) \
  ONE(ex2_f16x2, "ex2.approx.f16x2", 32, 75, of_both_halves<hopper::ex2_approx_f16>) \
  ONE(ex2_ftz_bf16, "ex2.approx.ftz.bf16", 16, 90, hopper::ex2_approx_ftz_bf16) \
  ONE(ex2_ftz_bf16x2, "ex2.approx.ftz.bf16x2", 32, 90, of_both_halves<hopper::ex2_approx_ftz_bf16>) \
  ONE(tanh_f16, "tanh.approx.f16", 16, 75, hopper::tanh_approx_f16) \
  ONE(tanh_f16x2, "tanh.approx.f16x2", 32, 75, of_both_halves<hopper::tanh_approx_f16>) \
  ONE(tanh_bf16, "tanh.approx.bf16", 16, 90, hopper::tanh_approx_bf16) \
  ONE(tanh_bf16x2, "tanh.approx.bf16x2", 32, 90, of_both_halves<hopper::tanh_approx_bf16>)
// clang-format on
