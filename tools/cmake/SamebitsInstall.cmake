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

if(TARGET samebits_c)
  install(TARGETS samebits_c EXPORT samebits-c
          LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
          FILE_SET c_api DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
          INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
  install(EXPORT samebits-c NAMESPACE samebits:: DESTINATION "${package_dir}"
          FILE samebits-c-targets.cmake)
  # The path from the .pc file to the prefix, so that an installation can be moved.
  file(RELATIVE_PATH prefix_from_pc "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/prefix")
  string(REGEX REPLACE "/$" "" prefix_from_pc "${prefix_from_pc}")
  configure_file(tools/cmake/samebits.pc.in samebits.pc @ONLY)
  install(FILES "${CMAKE_CURRENT_BINARY_DIR}/samebits.pc"
          DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endif()

# The test kit is made of headers that the tests keep under names such as support/generators.hpp.
# Installed they live in samebits/testkit/internal, and their #include lines say so: names this
# common must not be looked up among the user's own.
if(SAMEBITS_TESTKIT)
  install(TARGETS samebits_testkit EXPORT samebits-testkit
          ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
          INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
  install(EXPORT samebits-testkit NAMESPACE samebits:: DESTINATION "${package_dir}"
          FILE samebits-testkit-targets.cmake)
  file(GLOB testkit_headers CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/tests"
       tests/oracle/*.hpp tests/support/*.hpp tests/conformance/*_suite.hpp
       tests/testkit/samebits/testkit/*.hpp)
  foreach(header IN LISTS testkit_headers)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "tests/${header}")
    file(READ "tests/${header}" text)
    string(REGEX REPLACE "#include \"(oracle|support|conformance)/"
           "#include \"samebits/testkit/internal/\\1/" text "${text}")
    if(NOT header MATCHES "^testkit/")
      set(header "testkit/samebits/testkit/internal/${header}")
    endif()
    string(REPLACE "testkit/samebits/" "installed/samebits/" header "${header}")
    file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/testkit/${header}" CONTENT "${text}" @ONLY)
  endforeach()
  install(DIRECTORY "${PROJECT_BINARY_DIR}/testkit/installed/samebits"
          DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
endif()

configure_package_config_file(tools/cmake/samebits-config.cmake.in samebits-config.cmake
                              INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file(samebits-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/samebits-config.cmake"
              "${CMAKE_CURRENT_BINARY_DIR}/samebits-config-version.cmake"
              tools/cmake/SamebitsCudaDialect.cmake
        DESTINATION "${package_dir}")
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DATADIR}/licenses/samebits")
