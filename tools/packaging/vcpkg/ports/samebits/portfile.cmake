# vcpkg port of the library: an overlay port, which builds the checkout that it lies in.
#   vcpkg install samebits --overlay-ports=CHECKOUT/tools/packaging/vcpkg/ports
# Untested with vcpkg itself. The test package.vcpkg_port runs this file with substitutes for the vcpkg
# functions.
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../../../.." ABSOLUTE)

vcpkg_check_features(OUT_FEATURE_OPTIONS feature_options
  FEATURES
    c SAMEBITS_C
    cuda SAMEBITS_CUDA)
if("cuda" IN_LIST FEATURES)
  vcpkg_find_cuda(OUT_CUDA_TOOLKIT_ROOT cuda_toolkit_root)
  list(APPEND feature_options
    "-DCMAKE_CUDA_COMPILER=${cuda_toolkit_root}/bin/nvcc" "-DCUDAToolkit_ROOT=${cuda_toolkit_root}")
endif()
# The library with the C interface is a shared one, also where the triplet asks for static libraries.
if("c" IN_LIST FEATURES)
  set(VCPKG_POLICY_DLLS_IN_STATIC_LIBRARY enabled)
endif()

vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS
    ${feature_options}
    -DSAMEBITS_INSTALL=ON
    -DSAMEBITS_TESTS=OFF
    -DSAMEBITS_TESTKIT=OFF
    -DSAMEBITS_TOOLS=OFF
    -DSAMEBITS_PYTHON=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/samebits)
vcpkg_fixup_pkgconfig()

file(REMOVE_RECURSE
  "${CURRENT_PACKAGES_DIR}/debug/include"
  "${CURRENT_PACKAGES_DIR}/debug/share"
  "${CURRENT_PACKAGES_DIR}/share/licenses")
file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
