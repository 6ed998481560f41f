# cmake -P: builds the Conan package of SOURCE and runs its test package. Uses no network.
file(REMOVE_RECURSE "${WORK}")
set(ENV{CONAN_HOME} "${WORK}/home")
set(ENV{CXX} "${CXX}")
set(ENV{CC} "${CC}")
execute_process(COMMAND "${CONAN}" profile detect COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${CONAN}" create "${SOURCE}/tools/packaging/conan"
                        --build=missing --no-remote -c tools.build:jobs=2
                        -c "tools.cmake.cmake_layout:test_folder=${WORK}/test_package"
                COMMAND_ERROR_IS_FATAL ANY)
