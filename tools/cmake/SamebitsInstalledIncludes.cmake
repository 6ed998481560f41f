# Run by `cmake --install` after all headers are installed. An installed header names the headers of numerics/
# and of the test kit's parts by their place below samebits/. So users need one include path, and a folder of their
# own with a name as common as support/ cannot hide one of these headers.
cmake_path(ABSOLUTE_PATH samebits_include_dir BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}")
set(folder "$ENV{DESTDIR}${samebits_include_dir}/samebits")
file(GLOB_RECURSE headers "${folder}/*.hpp" "${folder}/*.cuh")
foreach(header IN LISTS headers)
  file(READ "${header}" text)
  string(REPLACE "#include \"numerics/" "#include \"samebits/internal/numerics/" installed "${text}")
  string(REGEX REPLACE "#include \"(engine|oracle|support)/"
         "#include \"samebits/testkit/internal/\\1/" installed "${installed}")
  if(NOT installed STREQUAL text)
    file(WRITE "${header}" "${installed}")
  endif()
endforeach()
