// Tensor core instructions of the PTX ISA on packed codes: mma.sync by warps, wgmma by warpgroups.
//
// With r = lane / 4 and t = lane % 4, a thread holds four results of a tile: rows r and r + 8 (plus
// 16 * warp for wgmma), columns 2t and 2t + 1. Operands are lines of K, 16 or 32 bytes long: rows
// of A and columns of B. Source: PTX ISA 8.5, "Matrix Fragments", "Asynchronous warpgroup".
#pragma once

#include <cstdint>

#include "tensor_core_probe/instructions.hpp"

namespace samebits::cuda {

using backends::tensor_cores::instruction;

/// Operands of one thread: words of A and B, and for wgmma the descriptors of both in shared memory.
struct fragments {
  std::uint32_t a[4];
  std::uint32_t b[2];
  std::uint64_t a_descriptor;
  std::uint64_t b_descriptor;
};

/// Whether lines of K are 32 bytes long, not 16.
template <instruction Which>
constexpr bool has_long_lines = shape_of(Which).products* spec_of(shape_of(Which).a).storage_bits ==
                                8 * 32;

// The target architecture of the compilation decides which instructions exist.
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define SAMEBITS_HAS_WGMMA 1
#else
#define SAMEBITS_HAS_WGMMA 0
#endif

// Operands of the texts by number: 0 to 3 are the words of D, of which fp16 results take two; 4 to 7
// the words of A, and 8 and 9 those of B, of which lines of 16 bytes take half; 10 and 11 the
// descriptors of A and B.
#define SAMEBITS_D_f32 "{%0,%1,%2,%3}"
#define SAMEBITS_D_f16 "{%0,%1}"
#define SAMEBITS_A_WORDS "{%4,%5,%6,%7}"
#define SAMEBITS_RUN(TEXT)                                                                     \
  asm volatile(TEXT                                                                            \
               : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])                                \
               : "r"(f.a[0]), "r"(f.a[1]), "r"(f.a[2]), "r"(f.a[3]), "r"(f.b[0]), "r"(f.b[1]), \
                 "l"(f.a_descriptor), "l"(f.b_descriptor)                                      \
               : "memory")

#define SAMEBITS_RUN_MMA(A, B, RESULT, PRODUCTS, AB)                                             \
  SAMEBITS_RUN("mma.sync.aligned.m16n8k" #PRODUCTS ".row.col." #RESULT "." #A "." #B "." #RESULT \
               " " SAMEBITS_D_##RESULT ", " AB ", " SAMEBITS_D_##RESULT ";")
#define SAMEBITS_MMA(ID, A, B, RESULT, PRODUCTS, CAPABILITY)                    \
  if constexpr (Which == instruction::ID && __CUDA_ARCH__ >= 10 * CAPABILITY) { \
    if constexpr (has_long_lines<Which>) {                                      \
      SAMEBITS_RUN_MMA(A, B, RESULT, PRODUCTS, SAMEBITS_A_WORDS ", {%8,%9}");   \
    } else {                                                                    \
      SAMEBITS_RUN_MMA(A, B, RESULT, PRODUCTS, "{%4,%5}, {%8}");                \
    }                                                                           \
  }

// Operands of 16 bits have the major order of each in shared memory at the end: along K.
#define SAMEBITS_MAJOR_f16 ", 0"
#define SAMEBITS_MAJOR_bf16 ", 0"
#define SAMEBITS_MAJOR_tf32 ""
#define SAMEBITS_MAJOR_e4m3 ""
#define SAMEBITS_MAJOR_e5m2 ""
// One assembly block from the fence to the wait: no other code may touch the results in between.
#define SAMEBITS_RUN_WGMMA(A, B, RESULT, PRODUCTS, A_OPERAND, MAJOR)            \
  SAMEBITS_RUN(                                                                 \
      "{\n.reg .pred p;\nsetp.ne.b32 p, 1, 0;\nwgmma.fence.sync.aligned;\n"     \
      "wgmma.mma_async.sync.aligned.m64n8k" #PRODUCTS "." #RESULT "." #A "." #B \
      " " SAMEBITS_D_##RESULT                                                   \
      ", " A_OPERAND ", %11, p, 1, 1" MAJOR                                     \
      ";\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n}")
#define SAMEBITS_WGMMA(ID, A, B, RESULT, PRODUCTS, CAPABILITY)                                  \
  if constexpr (Which == instruction::ID && SAMEBITS_HAS_WGMMA) {                               \
    if (a_in_registers) {                                                                       \
      SAMEBITS_RUN_WGMMA(A, B, RESULT, PRODUCTS, SAMEBITS_A_WORDS, SAMEBITS_MAJOR_##B);         \
    } else {                                                                                    \
      SAMEBITS_RUN_WGMMA(A, B, RESULT, PRODUCTS, "%10", SAMEBITS_MAJOR_##A SAMEBITS_MAJOR_##B); \
    }                                                                                           \
  }

/// Computes d += A * B. All threads of a warp (mma.sync) or warpgroup (wgmma) must call. fp32
/// results take four words of d, fp16 results two. Does nothing in kernels for an architecture
/// without the instruction.
/// @param a_in_registers  wgmma takes the words of A, not its descriptor
template <instruction Which>
__device__ __forceinline__ void execute(std::uint32_t* d, const fragments& f,
                                        [[maybe_unused]] bool a_in_registers) {
#ifdef __CUDA_ARCH__
  SAMEBITS_TENSOR_CORE_INSTRUCTIONS(SAMEBITS_MMA, SAMEBITS_WGMMA)
#endif
}

}  // namespace samebits::cuda
