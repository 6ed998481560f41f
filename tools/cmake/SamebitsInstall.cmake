# Install: headers, one export set per component, and the package files.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/samebits")
# Internal headers keep their own folder, so that "numerics/…" resolves in both trees and nothing
# but samebits/ appears in the user's include folder.
set(internal_dir "${CMAKE_INSTALL_INCLUDEDIR}/samebits/internal")

install(TARGETS samebits_core samebits_all EXPORT samebits-core
        ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
        LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
        FILE_SET api DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
        FILE_SET numerics DESTINATION "${internal_dir}"
        INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" "${internal_dir}")
install(EXPORT samebits-core NAMESPACE samebits:: DESTINATION "${package_dir}"
        FILE samebits-core-targets.cmake)

if(TARGET samebits_cuda)
  install(TARGETS samebits_cuda EXPORT samebits-cuda
          ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  install(EXPORT samebits-cuda NAMESPACE samebits:: DESTINATION "${package_dir}"
          FILE samebits-cuda-targets.cmake)
endif()

configure_package_config_file(tools/cmake/samebits-config.cmake.in samebits-config.cmake
                              INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file(samebits-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/samebits-config.cmake"
              "${CMAKE_CURRENT_BINARY_DIR}/samebits-config-version.cmake"
              tools/cmake/SamebitsCudaDialect.cmake
        DESTINATION "${package_dir}")
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DATADIR}/licenses/samebits")
