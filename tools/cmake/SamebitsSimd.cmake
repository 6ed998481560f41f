# SIMD backends: one translation unit per instruction set, each with its own flags, on x86-64.

if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  return()
endif()

# -O2 in every build type: force-inlined kernels must not become weak functions of these flags that
# the linker could hand to other files, and GCC's loop unswitching at -O3 doubles code for nothing.
set(simd_flags -O2)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 takes the undefined pass-through operands inside its own AVX-512 header for a fault.
  list(APPEND simd_flags -Wno-maybe-uninitialized -Wno-uninitialized)
endif()

target_sources(samebits_core PRIVATE
  backends/simd/compute.cpp backends/simd/compute_avx2.cpp backends/simd/compute_avx512.cpp
  backends/simd/convert_avx2.cpp backends/simd/convert_avx512.cpp
  backends/simd/matmul.cpp backends/simd/matmul_exact.cpp backends/simd/matmul_pack.cpp
  backends/simd/matmul_avx2.cpp backends/simd/matmul_avx512.cpp
  backends/simd/plan.cpp backends/simd/plan_avx2.cpp backends/simd/plan_avx512.cpp
  backends/simd/quantize.cpp backends/simd/quantize_avx2.cpp backends/simd/quantize_avx512.cpp
  backends/simd/self_test_avx2.cpp backends/simd/self_test_avx512.cpp
  backends/simd/simd.cpp)
set_source_files_properties(
  backends/simd/compute_avx2.cpp backends/simd/convert_avx2.cpp backends/simd/matmul_avx2.cpp
  backends/simd/plan_avx2.cpp
  backends/simd/quantize_avx2.cpp backends/simd/self_test_avx2.cpp PROPERTIES
  COMPILE_OPTIONS "${simd_flags};-mavx2")
set_source_files_properties(
  backends/simd/compute_avx512.cpp backends/simd/convert_avx512.cpp
  backends/simd/matmul_avx512.cpp backends/simd/plan_avx512.cpp backends/simd/quantize_avx512.cpp
  backends/simd/self_test_avx512.cpp PROPERTIES
  COMPILE_OPTIONS "${simd_flags};-mavx512f;-mavx512bw;-mavx512vl;-mavx512dq;-mavx512cd")
target_compile_definitions(samebits_core PRIVATE SAMEBITS_BACKEND_SIMD)
