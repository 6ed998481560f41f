# Install: headers, one export set per component, and the package files.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/samebits")
# The path from a .pc file to the prefix, so that an installation can be moved.
file(RELATIVE_PATH prefix_from_pc "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/prefix")
string(REGEX REPLACE "/$" "" prefix_from_pc "${prefix_from_pc}")

# samebits_install_pc(NAME what LIBS l [CFLAGS f] [REQUIRES name]) installs NAME.pc. The names are those of the Conan
# package.
function(samebits_install_pc name what)
  cmake_parse_arguments(pc "" "LIBS;CFLAGS;REQUIRES" "" ${ARGN})
  configure_file(tools/cmake/samebits.pc.in ${name}.pc @ONLY)
  install(FILES "${CMAKE_CURRENT_BINARY_DIR}/${name}.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endfunction()

install(TARGETS samebits_core samebits_all EXPORT samebits-core
        ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
        LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
        FILE_SET api DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
        INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
# Nothing but samebits/ appears in the user's include folder.
install(DIRECTORY numerics DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/samebits/internal"
        FILES_MATCHING PATTERN "*.hpp")
install(EXPORT samebits-core NAMESPACE samebits:: DESTINATION "${package_dir}"
        FILE samebits-core-targets.cmake)
samebits_install_pc(samebits-core "C++, for CPUs" LIBS "-lsamebits_core -pthread")

if(TARGET samebits_cuda)
  install(TARGETS samebits_cuda EXPORT samebits-cuda
          ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  install(EXPORT samebits-cuda NAMESPACE samebits:: DESTINATION "${package_dir}"
          FILE samebits-cuda-targets.cmake)
  list(JOIN CUDAToolkit_INCLUDE_DIRS " -I" cuda_includes)
  get_target_property(cuda_runtime CUDA::cudart_static IMPORTED_LOCATION)
  samebits_install_pc(samebits-cuda "C++, CUDA backends" REQUIRES samebits-core CFLAGS "-I${cuda_includes}"
    LIBS "-Wl,-u,samebits_cuda_backends -lsamebits_cuda ${cuda_runtime} -ldl -lrt")
endif()

if(TARGET samebits_c)
  install(TARGETS samebits_c EXPORT samebits-c
          LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
          FILE_SET c_api DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
          INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
  install(EXPORT samebits-c NAMESPACE samebits:: DESTINATION "${package_dir}"
          FILE samebits-c-targets.cmake)
  samebits_install_pc(samebits "C interface" LIBS -lsamebits_c)
endif()

# The test kit is made of headers that the tests keep under names such as support/generators.hpp.
if(SAMEBITS_TESTKIT)
  foreach(part testkit_checks testkit)
    install(TARGETS samebits_${part} EXPORT samebits-${part}
            ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
            INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
    install(EXPORT samebits-${part} NAMESPACE samebits:: DESTINATION "${package_dir}"
            FILE samebits-${part}-targets.cmake)
  endforeach()
  install(DIRECTORY tests/testkit/samebits DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
  install(DIRECTORY tests/engine tests/oracle tests/support
          DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/samebits/testkit/internal"
          FILES_MATCHING PATTERN "*.hpp" PATTERN "write_tensor_files.hpp" EXCLUDE)  # of tests of fpinspect
endif()
install(CODE "set(samebits_include_dir \"${CMAKE_INSTALL_INCLUDEDIR}\")")
install(SCRIPT tools/cmake/SamebitsInstalledIncludes.cmake)

configure_package_config_file(tools/cmake/samebits-config.cmake.in samebits-config.cmake
                              INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file(samebits-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/samebits-config.cmake"
              "${CMAKE_CURRENT_BINARY_DIR}/samebits-config-version.cmake"
              tools/cmake/SamebitsCudaDialect.cmake
        DESTINATION "${package_dir}")
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DATADIR}/licenses/samebits")
