# Included by find_package(samebits) from a Conan package with CUDA: links the CUDA runtime of the
# user's CUDA toolkit. The Conan package does not contain the CUDA runtime.
include("${CMAKE_CURRENT_LIST_DIR}/SamebitsCudaDialect.cmake")
include(CMakeFindDependencyMacro)
find_dependency(CUDAToolkit)
set_property(TARGET samebits::cuda APPEND PROPERTY INTERFACE_LINK_LIBRARIES CUDA::cudart_static)
