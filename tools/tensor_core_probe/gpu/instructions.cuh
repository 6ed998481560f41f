// Tensor core instructions of the PTX ISA on packed codes: mma.sync by warps, wgmma by warpgroups.
//
// With r = lane / 4 and t = lane % 4, a thread holds four results of a tile: rows r and r + 8 (plus
// 16 * warp for wgmma), columns 2t and 2t + 1. Operands are lines of K, 16 or 32 bytes long: rows
// of A and columns of B. Source: PTX ISA 8.5, "Matrix Fragments", "Asynchronous warpgroup".
#pragma once

#include <cstdint>

#include "tensor_core_probe/device.hpp"

namespace samebits::cuda {

using backends::tensor_cores::instruction;

/// Operands of one thread: words of A and B for mma.sync; descriptors for wgmma, whose A may also
/// be words.
struct fragments {
  std::uint32_t a[4];
  std::uint32_t b[2];
  std::uint64_t a_descriptor;
  std::uint64_t b_descriptor;
};

/// Computes results += A * B. All threads of a warp (mma.sync) or warpgroup (wgmma) must call. fp32
/// results take four words, fp16 results two.
template <instruction Which>
struct execute;

#if defined(__CUDA_ARCH__)
#define SAMEBITS_ARCH __CUDA_ARCH__
#else
#define SAMEBITS_ARCH 0
#endif
// The target architecture of the compilation decides which instructions exist.
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define SAMEBITS_HAS_WGMMA 1
#else
#define SAMEBITS_HAS_WGMMA 0
#endif

#define SAMEBITS_FP32_RESULTS                                   \
  float x0 = __uint_as_float(d[0]), x1 = __uint_as_float(d[1]); \
  float x2 = __uint_as_float(d[2]), x3 = __uint_as_float(d[3])
#define SAMEBITS_KEEP_FP32                                \
  d[0] = __float_as_uint(x0), d[1] = __float_as_uint(x1); \
  d[2] = __float_as_uint(x2), d[3] = __float_as_uint(x3)

// TEXT refers to the operands by number: four (fp32) or two (fp16) words of D, then the words of A
// and B.
#define SAMEBITS_MMA(ID, ARCH, RESULTS, KEEP, TEXT, OUT, IN)                           \
  template <>                                                                          \
  struct execute<instruction::ID> {                                                    \
    static __device__ __forceinline__ void run(std::uint32_t* d, const fragments& f) { \
      if constexpr (SAMEBITS_ARCH >= ARCH) {                                           \
        RESULTS;                                                                       \
        asm volatile("mma.sync.aligned." TEXT:OUT : IN);                               \
        KEEP;                                                                          \
      }                                                                                \
    }                                                                                  \
  }
#define SAMEBITS_F32 "+f"(x0), "+f"(x1), "+f"(x2), "+f"(x3)
#define SAMEBITS_F16 "+r"(d[0]), "+r"(d[1])
#define SAMEBITS_32_BYTES \
  "r"(f.a[0]), "r"(f.a[1]), "r"(f.a[2]), "r"(f.a[3]), "r"(f.b[0]), "r"(f.b[1])
#define SAMEBITS_16_BYTES "r"(f.a[0]), "r"(f.a[1]), "r"(f.b[0])
#define SAMEBITS_MMA_F32_32(ID, ARCH, TYPES)                                                 \
  SAMEBITS_MMA(ID, ARCH, SAMEBITS_FP32_RESULTS, SAMEBITS_KEEP_FP32,                          \
               TYPES " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};", SAMEBITS_F32, \
               SAMEBITS_32_BYTES)
#define SAMEBITS_MMA_F32_16(ID, ARCH, TYPES)                                        \
  SAMEBITS_MMA(ID, ARCH, SAMEBITS_FP32_RESULTS, SAMEBITS_KEEP_FP32,                 \
               TYPES " {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};", SAMEBITS_F32, \
               SAMEBITS_16_BYTES)
#define SAMEBITS_MMA_F16_32(ID, ARCH, TYPES)                                                   \
  SAMEBITS_MMA(ID, ARCH, (void)0, (void)0, TYPES " {%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%0,%1};", \
               SAMEBITS_F16, SAMEBITS_32_BYTES)
#define SAMEBITS_MMA_F16_16(ID, ARCH, TYPES)                                          \
  SAMEBITS_MMA(ID, ARCH, (void)0, (void)0, TYPES " {%0,%1}, {%2,%3}, {%4}, {%0,%1};", \
               SAMEBITS_F16, SAMEBITS_16_BYTES)

SAMEBITS_MMA_F32_32(mma_f16_k16, 800, "m16n8k16.row.col.f32.f16.f16.f32");
SAMEBITS_MMA_F32_16(mma_f16_k8, 750, "m16n8k8.row.col.f32.f16.f16.f32");
SAMEBITS_MMA_F16_32(mma_f16_f16_k16, 800, "m16n8k16.row.col.f16.f16.f16.f16");
SAMEBITS_MMA_F16_16(mma_f16_f16_k8, 750, "m16n8k8.row.col.f16.f16.f16.f16");
SAMEBITS_MMA_F32_32(mma_bf16_k16, 800, "m16n8k16.row.col.f32.bf16.bf16.f32");
SAMEBITS_MMA_F32_16(mma_bf16_k8, 800, "m16n8k8.row.col.f32.bf16.bf16.f32");
SAMEBITS_MMA_F32_32(mma_tf32_k8, 800, "m16n8k8.row.col.f32.tf32.tf32.f32");
SAMEBITS_MMA_F32_16(mma_tf32_k4, 800, "m16n8k4.row.col.f32.tf32.tf32.f32");
SAMEBITS_MMA_F32_32(mma_e4m3_k32, 890, "m16n8k32.row.col.f32.e4m3.e4m3.f32");
SAMEBITS_MMA_F32_32(mma_e5m2_k32, 890, "m16n8k32.row.col.f32.e5m2.e5m2.f32");
SAMEBITS_MMA_F32_32(mma_e4m3_e5m2_k32, 890, "m16n8k32.row.col.f32.e4m3.e5m2.f32");
SAMEBITS_MMA_F32_32(mma_e5m2_e4m3_k32, 890, "m16n8k32.row.col.f32.e5m2.e4m3.f32");
SAMEBITS_MMA_F32_16(mma_e4m3_k16, 890, "m16n8k16.row.col.f32.e4m3.e4m3.f32");
SAMEBITS_MMA_F32_16(mma_e5m2_k16, 890, "m16n8k16.row.col.f32.e5m2.e5m2.f32");
SAMEBITS_MMA_F32_16(mma_e4m3_e5m2_k16, 890, "m16n8k16.row.col.f32.e4m3.e5m2.f32");
SAMEBITS_MMA_F32_16(mma_e5m2_e4m3_k16, 890, "m16n8k16.row.col.f32.e5m2.e4m3.f32");
SAMEBITS_MMA_F16_32(mma_f16_e4m3_k32, 890, "m16n8k32.row.col.f16.e4m3.e4m3.f16");
SAMEBITS_MMA_F16_32(mma_f16_e5m2_k32, 890, "m16n8k32.row.col.f16.e5m2.e5m2.f16");
SAMEBITS_MMA_F16_32(mma_f16_e4m3_e5m2_k32, 890, "m16n8k32.row.col.f16.e4m3.e5m2.f16");
SAMEBITS_MMA_F16_32(mma_f16_e5m2_e4m3_k32, 890, "m16n8k32.row.col.f16.e5m2.e4m3.f16");
SAMEBITS_MMA_F16_16(mma_f16_e4m3_k16, 890, "m16n8k16.row.col.f16.e4m3.e4m3.f16");
SAMEBITS_MMA_F16_16(mma_f16_e5m2_k16, 890, "m16n8k16.row.col.f16.e5m2.e5m2.f16");
SAMEBITS_MMA_F16_16(mma_f16_e4m3_e5m2_k16, 890, "m16n8k16.row.col.f16.e4m3.e5m2.f16");
SAMEBITS_MMA_F16_16(mma_f16_e5m2_e4m3_k16, 890, "m16n8k16.row.col.f16.e5m2.e4m3.f16");

// One assembly block from the fence to the wait: no other code may touch the results in between.
#define SAMEBITS_WGMMA_RUN(NAME, RESULTS, KEEP, TEXT, OUT, ...)                       \
  static __device__ __forceinline__ void NAME(std::uint32_t* d, const fragments& f) { \
    if constexpr (SAMEBITS_HAS_WGMMA) {                                               \
      RESULTS;                                                                        \
      asm volatile(                                                                   \
          "{\n.reg .pred p;\nsetp.ne.b32 p, 1, 0;\nwgmma.fence.sync.aligned;\n"       \
          "wgmma.mma_async.sync.aligned." TEXT                                        \
          ";\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n}"  \
          : OUT                                                                       \
          : __VA_ARGS__, "l"(f.b_descriptor)                                          \
          : "memory");                                                                \
      KEEP;                                                                           \
    }                                                                                 \
  }
#define SAMEBITS_A_WORDS "r"(f.a[0]), "r"(f.a[1]), "r"(f.a[2]), "r"(f.a[3])
// run(): A in shared memory. run_registers(): A in registers. A_TAIL and TAIL: the scale factors of
// A and B; for 16-bit operands also the major orders of the operands in shared memory (along K).
#define SAMEBITS_WGMMA_F32(ID, TYPES, A_TAIL, TAIL)                                     \
  template <>                                                                           \
  struct execute<instruction::ID> {                                                     \
    SAMEBITS_WGMMA_RUN(run, SAMEBITS_FP32_RESULTS, SAMEBITS_KEEP_FP32,                  \
                       TYPES " {%0,%1,%2,%3}, %4, %5, p" A_TAIL, SAMEBITS_F32,          \
                       "l"(f.a_descriptor))                                             \
    SAMEBITS_WGMMA_RUN(run_registers, SAMEBITS_FP32_RESULTS, SAMEBITS_KEEP_FP32,        \
                       TYPES " {%0,%1,%2,%3}, {%4,%5,%6,%7}, %8, p" TAIL, SAMEBITS_F32, \
                       SAMEBITS_A_WORDS)                                                \
  }
#define SAMEBITS_WGMMA_F16(ID, TYPES, A_TAIL, TAIL)                                             \
  template <>                                                                                   \
  struct execute<instruction::ID> {                                                             \
    SAMEBITS_WGMMA_RUN(run, (void)0, (void)0, TYPES " {%0,%1}, %2, %3, p" A_TAIL, SAMEBITS_F16, \
                       "l"(f.a_descriptor))                                                     \
    SAMEBITS_WGMMA_RUN(run_registers, (void)0, (void)0,                                         \
                       TYPES " {%0,%1}, {%2,%3,%4,%5}, %6, p" TAIL, SAMEBITS_F16,               \
                       SAMEBITS_A_WORDS)                                                        \
  }

SAMEBITS_WGMMA_F32(wgmma_f16, "m64n8k16.f32.f16.f16", ", 1, 1, 0, 0", ", 1, 1, 0");
SAMEBITS_WGMMA_F16(wgmma_f16_f16, "m64n8k16.f16.f16.f16", ", 1, 1, 0, 0", ", 1, 1, 0");
SAMEBITS_WGMMA_F32(wgmma_bf16, "m64n8k16.f32.bf16.bf16", ", 1, 1, 0, 0", ", 1, 1, 0");
SAMEBITS_WGMMA_F32(wgmma_tf32, "m64n8k8.f32.tf32.tf32", ", 1, 1", ", 1, 1");
SAMEBITS_WGMMA_F32(wgmma_e4m3, "m64n8k32.f32.e4m3.e4m3", ", 1, 1", ", 1, 1");
SAMEBITS_WGMMA_F32(wgmma_e5m2, "m64n8k32.f32.e5m2.e5m2", ", 1, 1", ", 1, 1");
SAMEBITS_WGMMA_F32(wgmma_e4m3_e5m2, "m64n8k32.f32.e4m3.e5m2", ", 1, 1", ", 1, 1");
SAMEBITS_WGMMA_F32(wgmma_e5m2_e4m3, "m64n8k32.f32.e5m2.e4m3", ", 1, 1", ", 1, 1");
SAMEBITS_WGMMA_F16(wgmma_f16_e4m3, "m64n8k32.f16.e4m3.e4m3", ", 1, 1", ", 1, 1");
SAMEBITS_WGMMA_F16(wgmma_f16_e5m2, "m64n8k32.f16.e5m2.e5m2", ", 1, 1", ", 1, 1");
SAMEBITS_WGMMA_F16(wgmma_f16_e4m3_e5m2, "m64n8k32.f16.e4m3.e5m2", ", 1, 1", ", 1, 1");
SAMEBITS_WGMMA_F16(wgmma_f16_e5m2_e4m3, "m64n8k32.f16.e5m2.e4m3", ", 1, 1", ", 1, 1");

}  // namespace samebits::cuda
