# explorer_module.inc: the explorer's WebAssembly module as a C++ string literal of hexadecimal digits.
# The string is empty where clang, wasm-ld or wasi-libc is missing: fpinspect then has no explorer.
find_program(SAMEBITS_WASM_CLANG NAMES clang clang-19 clang-14 DOC "Compiles the explorer to WebAssembly")
set(samebits_wasm_flags --target=wasm32-wasi -std=c++20 -O2 -fno-exceptions -nostartfiles
    -Wl,--no-entry -Wl,--strip-all)
set(explorer_module "${CMAKE_CURRENT_BINARY_DIR}/explorer/explorer_module.inc")
set(explorer_source "${CMAKE_CURRENT_SOURCE_DIR}/explorer/module.cpp")

if(SAMEBITS_WASM_CLANG AND NOT SAMEBITS_WASM_WORKS)
  set(probe "${CMAKE_CURRENT_BINARY_DIR}/explorer/probe")
  file(WRITE "${probe}.cpp" "#include <bit>\n#include <optional>\n"
       "extern \"C\" __attribute__((export_name(\"f\"))) int f(unsigned x) { return std::popcount(x); }\n")
  execute_process(COMMAND "${SAMEBITS_WASM_CLANG}" ${samebits_wasm_flags} "${probe}.cpp" -o "${probe}.wasm"
                  RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
  if(failed)
    message(STATUS "fpinspect explorer: no; it needs clang, wasm-ld and wasi-libc with libc++")
    set(works OFF)
  else()
    set(works ON)
  endif()
  set(SAMEBITS_WASM_WORKS ${works} CACHE BOOL "Whether clang compiles and links for wasm32-wasi" FORCE)
endif()

if(SAMEBITS_WASM_WORKS)
  set(wasm "${CMAKE_CURRENT_BINARY_DIR}/explorer/module.wasm")
  file(MAKE_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/explorer")
  add_custom_command(
    OUTPUT "${explorer_module}"
    COMMAND "${SAMEBITS_WASM_CLANG}" ${samebits_wasm_flags} "-I${PROJECT_SOURCE_DIR}"
            "-I${PROJECT_SOURCE_DIR}/include" -MD -MF "${wasm}.d" -MT "${explorer_module}"
            "${explorer_source}" -o "${wasm}"
    COMMAND "${CMAKE_COMMAND}" "-DFROM=${wasm}" "-DTO=${explorer_module}"
            -P "${CMAKE_CURRENT_SOURCE_DIR}/explorer/to_hexadecimal.cmake"
    DEPENDS "${explorer_source}" "${CMAKE_CURRENT_SOURCE_DIR}/explorer/to_hexadecimal.cmake"
    DEPFILE "${wasm}.d"
    COMMENT "Compiling the explorer to WebAssembly"
    VERBATIM)
else()
  file(CONFIGURE OUTPUT "${explorer_module}" CONTENT "R\"hex()hex\"\n")
endif()
