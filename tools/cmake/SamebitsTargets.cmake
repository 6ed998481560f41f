# Flags that every compiled file of the project gets, in one place.

# Warnings, and the flags that keep binary64 and binary32 steps what they are written as (contract
# §6): no contraction of a * b + c, no fast-math.
function(samebits_compile_options target)
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wconversion -Wsign-conversion -Wshadow -ffp-contract=off>)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # GCC 12 sees overlapping copies in std::string's operator+ that are not there (GCC PR 105651).
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
  elseif(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC 13 takes a reference into a table for one into the temporary arguments of the call.
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-dangling-reference>)
  elseif(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 14)
    # numerics/ combines masks by | and & for any number of lanes; the mask of a single lane is a bool.
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-bitwise-instead-of-logical>)
  endif()
  if(SAMEBITS_WERROR)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
  endif()
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
endfunction()

# Release code at another level of optimisation than -O3, which takes longest to compile: for code that
# runs once, or waits for files and for the library. OPTIMISATION is -O0 or -O1.
function(samebits_release_optimisation target optimisation)
  target_compile_options(${target} PRIVATE
    $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:${optimisation}>)
endfunction()

# Sources of a target that compile together, as one translation unit: each is short, and most of its
# time would go into the headers. No local name may stand in two of them.
function(samebits_sources_together target group)
  target_sources(${target} PRIVATE ${ARGN})
  set_source_files_properties(${ARGN} TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP ${group})
endfunction()

# A test of a program's exit status and output: samebits_add_output_test(NAME LABELS PATTERN PROGRAM
# [ARGUMENTS...]). The status must be 0, or N after STATUS N.
function(samebits_add_output_test name labels pattern program)
  cmake_parse_arguments(arg "" "STATUS" "" ${ARGN})
  if(NOT DEFINED arg_STATUS)
    set(arg_STATUS 0)
  endif()
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  add_test(NAME ${name} COMMAND "${Python3_EXECUTABLE}"
           "${PROJECT_SOURCE_DIR}/tests/support/expect_output.py" --status ${arg_STATUS} "${pattern}"
           $<TARGET_FILE:${program}> ${arg_UNPARSED_ARGUMENTS})
  set_tests_properties(${name} PROPERTIES LABELS "${labels}")
endfunction()

if(SAMEBITS_SANITIZE)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${SAMEBITS_SANITIZE}>
                      $<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize-recover=all>
                      $<$<COMPILE_LANGUAGE:CXX>:-fno-omit-frame-pointer>)
  add_link_options(-fsanitize=${SAMEBITS_SANITIZE})
endif()
