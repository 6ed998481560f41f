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

# samebits::cuda: the definition inside a user's kernels. The scalar API (samebits/scalar.hpp,
# samebits/types.hpp) is host and device code; this target gives a .cu file the include folders, the
# dialect and the static CUDA runtime.
add_library(samebits_cuda INTERFACE)
add_library(samebits::cuda ALIAS samebits_cuda)
set_target_properties(samebits_cuda PROPERTIES EXPORT_NAME cuda)
target_link_libraries(samebits_cuda INTERFACE CUDA::cudart_static)
