# CUDA: finds nvcc, teaches CMake 3.25 about CUDA C++20, defines samebits::cuda.

include(CheckLanguage)
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER)
  if(NOT SAMEBITS_CUDA STREQUAL "AUTO")
    message(FATAL_ERROR "SAMEBITS_CUDA=${SAMEBITS_CUDA}, but no CUDA compiler was found "
                        "(set CMAKE_CUDA_COMPILER or put nvcc on PATH)")
  endif()
  message(STATUS "samebits: no CUDA compiler, building without the CUDA parts")
  return()
endif()

if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  # SASS for Ampere, Ada and Hopper; PTX of the last for later GPUs.
  set(CMAKE_CUDA_ARCHITECTURES 80-real 89-real 90)
endif()
enable_language(CUDA)
include("${CMAKE_CURRENT_LIST_DIR}/SamebitsCudaDialect.cmake")
find_package(CUDAToolkit REQUIRED)

# A function of the host alone called by one for both: nvcc warns, and drops what follows the call on
# the device without a word at run time.
add_compile_options($<$<COMPILE_LANGUAGE:CUDA>:--diag-error=20011,20013,20014,20015>)

# samebits::cuda: the CUDA backends, and the definition inside a user's kernels.
function(samebits_add_cuda_library)
  add_library(samebits_cuda STATIC
    backends/cuda/compute.cu
    backends/cuda/convert.cu
    backends/cuda/cuda.cu
    backends/cuda/dense_layout.cu
    backends/cuda/device_scaler.cu
    backends/cuda/gradient_reduction.cu
    backends/cuda/memory.cu
    backends/cuda/native/block_tiles.cu
    backends/cuda/native/compute.cu
    backends/cuda/native/compute_fp8.cu
    backends/cuda/native/convert.cu
    backends/cuda/native/counted_tiles.cu
    backends/cuda/native/list_tiles.cu
    backends/cuda/native/plan_cast.cu
    backends/cuda/native/quantize.cu
    backends/cuda/native/reductions.cu
    backends/cuda/native/row_tiles.cu
    backends/cuda/native/tensor_amax.cu
    backends/cuda/plan.cu
    backends/cuda/plan_cast.cu
    backends/cuda/plan_elementwise.cu
    backends/cuda/plan_inspect.cu
    backends/cuda/quantize.cu
    backends/cuda/quantize_list.cu
    backends/cuda/ranks.cu
    backends/cuda/reductions.cu
    backends/cuda/runtime.cu
    backends/cuda/self_test.cu
    backends/cuda/self_test_codes.cu
    backends/cuda/statistics.cu)
  add_library(samebits::cuda ALIAS samebits_cuda)
  set_target_properties(samebits_cuda PROPERTIES
    EXPORT_NAME cuda CUDA_STANDARD 20 CUDA_STANDARD_REQUIRED ON CUDA_EXTENSIONS OFF
    POSITION_INDEPENDENT_CODE ON)
  # --fmad=false: no contraction, contract §6. -O2 as for every force-inlined kernel.
  target_compile_options(samebits_cuda PRIVATE
    $<$<COMPILE_LANGUAGE:CUDA>:--fmad=false -Xcompiler=-Wall,-Wextra,-ffp-contract=off>)
  target_link_libraries(samebits_cuda PUBLIC samebits_core PRIVATE CUDA::cudart_static)
  target_include_directories(samebits_cuda INTERFACE
    "$<BUILD_INTERFACE:${CUDAToolkit_INCLUDE_DIRS}>")
  # The registry of the core library finds these backends through a weak reference, which alone does
  # not pull a member out of an archive.
  target_link_options(samebits_cuda INTERFACE "LINKER:-u,samebits_cuda_backends")
endfunction()

# samebits::tensor_cores: runs the tensor core instructions of this machine's GPU for the check of
# samebits/tensor_core_check.hpp. A library of its own, so that no other program carries it.
function(samebits_add_tensor_cores_library)
  # Whatever else is built, an architecture decides here which instructions there are: wgmma in sm_90a
  # alone, FP8 from sm_89 on, emulated in some and not in others.
  add_library(samebits_wgmma OBJECT backends/cuda/tensor_cores/wgmma.cu)
  add_library(samebits_tensor_cores STATIC
    backends/cuda/tensor_cores/device.cu
    backends/cuda/tensor_cores/mma.cu
    $<TARGET_OBJECTS:samebits_wgmma>)
  set_target_properties(samebits_wgmma PROPERTIES CUDA_ARCHITECTURES 90a-real)
  set_target_properties(samebits_tensor_cores PROPERTIES
    EXPORT_NAME tensor_cores CUDA_ARCHITECTURES "75-real;80-real;89-real;90-real;100-real;110-real;120")
  foreach(target samebits_wgmma samebits_tensor_cores)
    set_target_properties(${target} PROPERTIES
      CUDA_STANDARD 20 CUDA_STANDARD_REQUIRED ON CUDA_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>)
    target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}"
                               "${PROJECT_SOURCE_DIR}/include")
  endforeach()
  add_library(samebits::tensor_cores ALIAS samebits_tensor_cores)
  target_link_libraries(samebits_tensor_cores PUBLIC samebits_core PRIVATE CUDA::cudart_static)
  target_link_options(samebits_tensor_cores INTERFACE "LINKER:-u,samebits_tensor_core_device")
endfunction()
