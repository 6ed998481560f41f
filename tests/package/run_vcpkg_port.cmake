# cmake -P: runs the vcpkg port with substitutes for the vcpkg functions, over a build that exists.
# Checks paths, the names of CMake options, and the version. Does not run vcpkg.
cmake_minimum_required(VERSION 3.25)
file(REMOVE_RECURSE "${WORK}")
set(PORT samebits)
set(CURRENT_PACKAGES_DIR "${WORK}/packages")
set(port_dir "${SOURCE}/tools/packaging/vcpkg/ports/samebits")

function(require path)
  file(GLOB found "${path}")
  if(NOT found)
    message(FATAL_ERROR "the port needs a file that is not there: ${path}")
  endif()
endfunction()

function(vcpkg_check_features)
  cmake_parse_arguments(arg "" "OUT_FEATURE_OPTIONS" "FEATURES" ${ARGN})
  while(arg_FEATURES)
    list(POP_FRONT arg_FEATURES feature option)
    string(JSON description GET "${manifest}" features ${feature} description)
    list(APPEND options -D${option}=ON)
  endwhile()
  set(${arg_OUT_FEATURE_OPTIONS} ${options} PARENT_SCOPE)
endfunction()

function(vcpkg_find_cuda out_name root)
  set(${root} "${WORK}/cuda" PARENT_SCOPE)
endfunction()

function(vcpkg_cmake_configure)
  cmake_parse_arguments(arg "" "SOURCE_PATH" "OPTIONS" ${ARGN})
  require("${arg_SOURCE_PATH}/CMakeLists.txt")
  file(READ "${arg_SOURCE_PATH}/CMakeLists.txt" lists)
  foreach(option IN LISTS arg_OPTIONS)
    string(REGEX REPLACE "^-D([A-Za-z_]+)=.*" "\\1" option "${option}")
    if(option MATCHES "^SAMEBITS_" AND NOT lists MATCHES "(option|set)\\(${option} ")
      message(FATAL_ERROR "the port sets ${option}, which CMakeLists.txt does not have")
    endif()
  endforeach()
endfunction()

function(vcpkg_cmake_install)
  execute_process(COMMAND "${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${CURRENT_PACKAGES_DIR}"
                  OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
endfunction()

function(vcpkg_cmake_config_fixup keyword path)
  string(REGEX REPLACE "^lib/" "lib*/" path "${path}")  # vcpkg always installs into lib/
  require("${CURRENT_PACKAGES_DIR}/${path}/samebits-config.cmake")
endfunction()

function(vcpkg_fixup_pkgconfig)
  require("${CURRENT_PACKAGES_DIR}/lib*/pkgconfig/samebits.pc")
  require("${CURRENT_PACKAGES_DIR}/lib*/pkgconfig/samebits-core.pc")
endfunction()

function(vcpkg_install_copyright keyword path)
  require("${path}")
endfunction()

file(READ "${port_dir}/vcpkg.json" manifest)
string(JSON version GET "${manifest}" version)
file(STRINGS "${SOURCE}/include/samebits/core/config.hpp" line REGEX "define SAMEBITS_VERSION \"")
if(NOT line MATCHES "\"${version}\"")
  message(FATAL_ERROR "vcpkg.json has version ${version}, but config.hpp has ${line}")
endif()
set(FEATURES core c cuda)
include("${port_dir}/portfile.cmake")
require("${CURRENT_PACKAGES_DIR}/share/samebits/usage")
