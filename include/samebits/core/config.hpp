// Version, and macros for compilers and execution spaces. Only this file tests __CUDACC__.
#pragma once

#if !((defined(_MSVC_LANG) && _MSVC_LANG >= 202002L) || __cplusplus >= 202002L)
#error "samebits needs C++20: add -std=c++20 (CMake: cxx_std_20, in CUDA files CUDA_STANDARD 20)"
#endif

// CMake reads the version from here.
#define SAMEBITS_VERSION_MAJOR 0
#define SAMEBITS_VERSION_MINOR 1
#define SAMEBITS_VERSION_PATCH 0
#define SAMEBITS_VERSION "0.1.0"

// SAMEBITS_HD marks functions that kernels may call; empty without a CUDA compiler.
// SAMEBITS_INLINE also forces inlining. The definitions in numerics/ have formats and rounding
// modes as ordinary parameters, and become specialised code only if constants reach them.
// SAMEBITS_NOINLINE keeps long functions out of kernels that would otherwise have many copies.
#if defined(__CUDACC__)
#define SAMEBITS_HD __host__ __device__
#define SAMEBITS_INLINE __host__ __device__ __forceinline__
#define SAMEBITS_NOINLINE __host__ __device__ __noinline__
#elif defined(__GNUC__) || defined(__clang__)
#define SAMEBITS_HD
#define SAMEBITS_INLINE [[gnu::always_inline]] inline
#define SAMEBITS_NOINLINE [[gnu::noinline]]
#else
#define SAMEBITS_HD
#define SAMEBITS_INLINE inline
#define SAMEBITS_NOINLINE
#endif

// Defined while a CUDA compiler compiles device code. Device code cannot read a host array.
// SAMEBITS_TABLE declares a constant array at namespace scope that functions for host and device
// read: device code reads a copy in the GPU's memory.
#if defined(__CUDA_ARCH__)
#define SAMEBITS_DEVICE_CODE
#define SAMEBITS_TABLE static __device__ constexpr
#else
#define SAMEBITS_TABLE inline constexpr
#endif
