// Every tensor core instruction that the check knows, as a list for macros: its name, which holds the result
// format (f16 if not fp32), the operand formats and, of mma.sync, the number of products; the formats of A, B
// and the result; the number of products; and the lowest compute capability that has it.
#pragma once

// clang-format off
#define SAMEBITS_MMA_INSTRUCTIONS(ONE) \
  ONE(mma_f16_k16, fp16, fp16, fp32, 16, 80) \
  ONE(mma_f16_k8, fp16, fp16, fp32, 8, 75) \
  ONE(mma_f16_f16_k16, fp16, fp16, fp16, 16, 80) \
  ONE(mma_f16_f16_k8, fp16, fp16, fp16, 8, 75) \
  ONE(mma_bf16_k16, bf16, bf16, fp32, 16, 80) \
  ONE(mma_bf16_k8, bf16, bf16, fp32, 8, 80) \
  ONE(mma_tf32_k8, tf32, tf32, fp32, 8, 80) \
  ONE(mma_tf32_k4, tf32, tf32, fp32, 4, 80) \
  ONE(mma_e4m3_k32, e4m3, e4m3, fp32, 32, 89) \
  ONE(mma_e5m2_k32, e5m2, e5m2, fp32, 32, 89) \
  ONE(mma_e4m3_e5m2_k32, e4m3, e5m2, fp32, 32, 89) \
  ONE(mma_e5m2_e4m3_k32, e5m2, e4m3, fp32, 32, 89) \
  ONE(mma_e4m3_k16, e4m3, e4m3, fp32, 16, 89) \
  ONE(mma_e5m2_k16, e5m2, e5m2, fp32, 16, 89) \
  ONE(mma_e4m3_e5m2_k16, e4m3, e5m2, fp32, 16, 89) \
  ONE(mma_e5m2_e4m3_k16, e5m2, e4m3, fp32, 16, 89) \
  ONE(mma_f16_e4m3_k32, e4m3, e4m3, fp16, 32, 89) \
  ONE(mma_f16_e5m2_k32, e5m2, e5m2, fp16, 32, 89) \
  ONE(mma_f16_e4m3_e5m2_k32, e4m3, e5m2, fp16, 32, 89) \
  ONE(mma_f16_e5m2_e4m3_k32, e5m2, e4m3, fp16, 32, 89) \
  ONE(mma_f16_e4m3_k16, e4m3, e4m3, fp16, 16, 89) \
  ONE(mma_f16_e5m2_k16, e5m2, e5m2, fp16, 16, 89) \
  ONE(mma_f16_e4m3_e5m2_k16, e4m3, e5m2, fp16, 16, 89) \
  ONE(mma_f16_e5m2_e4m3_k16, e5m2, e4m3, fp16, 16, 89)
#define SAMEBITS_WGMMA_INSTRUCTIONS(ONE) \
  ONE(wgmma_f16, fp16, fp16, fp32, 16, 90) \
  ONE(wgmma_f16_f16, fp16, fp16, fp16, 16, 90) \
  ONE(wgmma_bf16, bf16, bf16, fp32, 16, 90) \
  ONE(wgmma_tf32, tf32, tf32, fp32, 8, 90) \
  ONE(wgmma_e4m3, e4m3, e4m3, fp32, 32, 90) \
  ONE(wgmma_e5m2, e5m2, e5m2, fp32, 32, 90) \
  ONE(wgmma_e4m3_e5m2, e4m3, e5m2, fp32, 32, 90) \
  ONE(wgmma_e5m2_e4m3, e5m2, e4m3, fp32, 32, 90) \
  ONE(wgmma_f16_e4m3, e4m3, e4m3, fp16, 32, 90) \
  ONE(wgmma_f16_e5m2, e5m2, e5m2, fp16, 32, 90) \
  ONE(wgmma_f16_e4m3_e5m2, e4m3, e5m2, fp16, 32, 90) \
  ONE(wgmma_f16_e5m2_e4m3, e5m2, e4m3, fp16, 32, 90)
// clang-format on
