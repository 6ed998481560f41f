# Looks for an interpreter that can build and test the Python package: the one in the environment
# variable SAMEBITS_PYTHON, else python3. Sets SAMEBITS_BUILD_PYTHON.

if(DEFINED ENV{SAMEBITS_PYTHON})
  set(Python_EXECUTABLE "$ENV{SAMEBITS_PYTHON}")
else()
  find_program(Python_EXECUTABLE python3)
endif()
execute_process(COMMAND "${Python_EXECUTABLE}" -c
                        "import mypy, nanobind, nanobind_backend, numpy, pytest"
                RESULT_VARIABLE samebits_python_lacks OUTPUT_QUIET ERROR_QUIET)
if(samebits_python_lacks)
  message(STATUS "samebits: Python package left out: ${Python_EXECUTABLE} lacks a package of "
                 "python/requirements-test.txt")
  set(SAMEBITS_BUILD_PYTHON OFF)
else()
  set(SAMEBITS_BUILD_PYTHON ON)
endif()
