// Every tensor core instruction that the check knows, as a list for macros: its name, which holds the result
// format (f16 if not f32), the operand formats and, of mma.sync, the number of products; the types of A, B and
// the result in PTX; the number of products; and the lowest compute capability that has it.
#pragma once

// clang-format off
#define SAMEBITS_TENSOR_CORE_INSTRUCTIONS(MMA, WGMMA) \
  MMA(mma_f16_k16, f16, f16, f32, 16, 80) \
  MMA(mma_f16_k8, f16, f16, f32, 8, 75) \
  MMA(mma_f16_f16_k16, f16, f16, f16, 16, 80) \
  MMA(mma_f16_f16_k8, f16, f16, f16, 8, 75) \
  MMA(mma_bf16_k16, bf16, bf16, f32, 16, 80) \
  MMA(mma_bf16_k8, bf16, bf16, f32, 8, 80) \
  MMA(mma_tf32_k8, tf32, tf32, f32, 8, 80) \
  MMA(mma_tf32_k4, tf32, tf32, f32, 4, 80) \
  MMA(mma_e4m3_k32, e4m3, e4m3, f32, 32, 89) \
  MMA(mma_e5m2_k32, e5m2, e5m2, f32, 32, 89) \
  MMA(mma_e4m3_e5m2_k32, e4m3, e5m2, f32, 32, 89) \
  MMA(mma_e5m2_e4m3_k32, e5m2, e4m3, f32, 32, 89) \
  MMA(mma_e4m3_k16, e4m3, e4m3, f32, 16, 89) \
  MMA(mma_e5m2_k16, e5m2, e5m2, f32, 16, 89) \
  MMA(mma_e4m3_e5m2_k16, e4m3, e5m2, f32, 16, 89) \
  MMA(mma_e5m2_e4m3_k16, e5m2, e4m3, f32, 16, 89) \
  MMA(mma_f16_e4m3_k32, e4m3, e4m3, f16, 32, 89) \
  MMA(mma_f16_e5m2_k32, e5m2, e5m2, f16, 32, 89) \
  MMA(mma_f16_e4m3_e5m2_k32, e4m3, e5m2, f16, 32, 89) \
  MMA(mma_f16_e5m2_e4m3_k32, e5m2, e4m3, f16, 32, 89) \
  MMA(mma_f16_e4m3_k16, e4m3, e4m3, f16, 16, 89) \
  MMA(mma_f16_e5m2_k16, e5m2, e5m2, f16, 16, 89) \
  MMA(mma_f16_e4m3_e5m2_k16, e4m3, e5m2, f16, 16, 89) \
  MMA(mma_f16_e5m2_e4m3_k16, e5m2, e4m3, f16, 16, 89) \
  WGMMA(wgmma_f16, f16, f16, f32, 16, 90) \
  WGMMA(wgmma_f16_f16, f16, f16, f16, 16, 90) \
  WGMMA(wgmma_bf16, bf16, bf16, f32, 16, 90) \
  WGMMA(wgmma_tf32, tf32, tf32, f32, 8, 90) \
  WGMMA(wgmma_e4m3, e4m3, e4m3, f32, 32, 90) \
  WGMMA(wgmma_e5m2, e5m2, e5m2, f32, 32, 90) \
  WGMMA(wgmma_e4m3_e5m2, e4m3, e5m2, f32, 32, 90) \
  WGMMA(wgmma_e5m2_e4m3, e5m2, e4m3, f32, 32, 90) \
  WGMMA(wgmma_f16_e4m3, e4m3, e4m3, f16, 32, 90) \
  WGMMA(wgmma_f16_e5m2, e5m2, e5m2, f16, 32, 90) \
  WGMMA(wgmma_f16_e4m3_e5m2, e4m3, e5m2, f16, 32, 90) \
  WGMMA(wgmma_f16_e5m2_e4m3, e5m2, e4m3, f16, 32, 90)
// clang-format on
