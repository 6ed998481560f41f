# The headers that fpinspect is made of, in builds of the Python package. An sdist brings those of the machine that made
# it, with their licences, in third_party/; a wheel is built from these where they are, else from the system's.

set(third_party "${PROJECT_SOURCE_DIR}/third_party")
set(packages CLI11 nlohmann_json)
set(folders CLI nlohmann)
set(debian_packages libcli11-dev nlohmann-json3-dev)

if(SKBUILD_STATE STREQUAL "sdist")
  file(REMOVE_RECURSE "${third_party}")
else()
  list(PREPEND CMAKE_PREFIX_PATH "${third_party}")
endif()

foreach(package folder debian_package IN ZIP_LISTS packages folders debian_packages)
  find_package(${package} CONFIG QUIET)
  if(NOT ${package}_FOUND)
    message(WARNING "samebits: ${package} is missing (Debian's package ${debian_package}): no fpinspect")
    continue()
  endif()
  cmake_path(SET prefix NORMALIZE "${${package}_DIR}/../../..")  # of <prefix>/share/cmake/<package>
  if(SKBUILD_STATE STREQUAL "sdist")
    file(COPY "${prefix}/include/${folder}" DESTINATION "${third_party}/include")
    file(COPY "${${package}_DIR}" DESTINATION "${third_party}/share/cmake")
    file(COPY "${prefix}/share/doc/${debian_package}" DESTINATION "${third_party}/share/doc"
         FILES_MATCHING PATTERN copyright)
  else()  # the wheel's program contains them
    install(FILES "${prefix}/share/doc/${debian_package}/copyright" OPTIONAL COMPONENT python
            DESTINATION "${SKBUILD_METADATA_DIR}/licenses/${debian_package}")
  endif()
endforeach()
