# CUDA: finds nvcc and teaches CMake 3.25 about CUDA C++20.

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
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)
find_package(CUDAToolkit REQUIRED)

# A function of the host alone called by one for both: nvcc warns, and drops what follows the call on
# the device without a word at run time.
add_compile_options($<$<COMPILE_LANGUAGE:CUDA>:--diag-error=20011,20013,20014,20015>)

# Machine code in a quarter of the bytes; the driver unpacks it when a kernel is first used. Drivers for
# CUDA 13 all can, those of early CUDA 12 cannot. PTX alone, which CI compiles, is not shipped.
if(CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 13.0 AND NOT CMAKE_CUDA_ARCHITECTURES MATCHES "^[0-9]+-virtual$")
  add_compile_options($<$<COMPILE_LANGUAGE:CUDA>:--compress-mode=size>)
endif()
