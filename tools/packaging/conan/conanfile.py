"""Conan 2 recipe: builds a package of the library from this checkout.

    conan create tools/packaging/conan --build=missing

Components: core, cuda (option with_cuda) and c (option with_c). The CMake targets have the same names
as in an installation without Conan: samebits::core, samebits::cuda, samebits::c, samebits::samebits.
"""

import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load, rm, rmdir

required_conan_version = ">=2.12"

CHECKOUT = os.path.join("..", "..", "..")  # from the folder of this file


class SamebitsConan(ConanFile):
    name = "samebits"
    description = "Low-precision floating point with the same bits on CPU and GPU"
    license = "Apache-2.0"
    topics = ("floating-point", "fp8", "bfloat16", "quantization", "cuda")
    settings = "os", "arch", "compiler", "build_type"
    options = {"with_cuda": [True, False], "with_c": [True, False]}
    default_options = {"with_cuda": False, "with_c": True}

    def set_version(self):
        header = os.path.join(self.recipe_folder, CHECKOUT, "include/samebits/core/config.hpp")
        self.version = re.search(r'define SAMEBITS_VERSION "([^"]+)"', load(self, header))[1]

    def export_sources(self):
        checkout = os.path.join(self.recipe_folder, CHECKOUT)
        for pattern in ("CMakeLists.txt", "LICENSE", "backends/*", "include/*", "numerics/*",
                        "tools/cmake/*", "tools/packaging/conan/*.cmake"):
            copy(self, pattern, checkout, self.export_sources_folder)

    def configure(self):
        # The build always uses C++20, whichever standard the profile names.
        self.settings.rm_safe("compiler.cppstd")

    def validate(self):
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration("samebits is built and tested on Linux only")

    def layout(self):
        self.folders.root = CHECKOUT
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.user_presets_path = False  # writes nothing into the checkout outside build/
        for option in ("TESTS", "TESTKIT", "TOOLS", "PYTHON"):
            toolchain.cache_variables[f"SAMEBITS_{option}"] = "OFF"
        toolchain.cache_variables["SAMEBITS_INSTALL"] = "ON"
        toolchain.cache_variables["SAMEBITS_C"] = "ON" if self.options.with_c else "OFF"
        toolchain.cache_variables["SAMEBITS_CUDA"] = "ON" if self.options.with_cuda else "OFF"
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        rmdir(self, os.path.join(self.package_folder, "share"))
        # Conan generates these files from package_info().
        rmdir(self, os.path.join(self.package_folder, "lib", "pkgconfig"))
        modules = os.path.join(self.package_folder, "lib", "cmake", "samebits")
        rm(self, "samebits-*.cmake", modules)
        if self.options.with_cuda:
            copy(self, "SamebitsCudaRuntime.cmake",
                 os.path.join(self.source_folder, "tools/packaging/conan"), modules)
        else:
            rmdir(self, os.path.join(self.package_folder, "lib", "cmake"))

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "samebits")
        self.cpp_info.set_property("cmake_config_version_compat", "SameMinorVersion")
        # samebits::samebits contains no C interface, so it cannot be the target of all components.
        self.cpp_info.set_property("cmake_target_name", "samebits::all")
        self.cpp_info.set_property("pkg_config_name", "samebits-all")
        self.cpp_info.default_components = ["cpp"]

        core = self._component("core", "samebits::core", "samebits-core")
        core.libs = ["samebits_core"]
        core.system_libs = ["pthread"]

        cpp = self._component("cpp", "samebits::samebits", "samebits-cpp")
        cpp.libdirs = cpp.includedirs = []
        cpp.requires = ["core"]

        if self.options.with_cuda:
            cuda = self._component("cuda", "samebits::cuda", "samebits-cuda")
            cuda.libs = ["samebits_cuda"]
            cuda.requires = ["core"]
            # The core library refers to the CUDA backends weakly. A weak reference alone does not
            # take them out of the archive.
            cuda.exelinkflags = cuda.sharedlinkflags = ["-Wl,-u,samebits_cuda_backends"]
            cpp.requires.append("cuda")
            self.cpp_info.set_property("cmake_build_modules",
                                       ["lib/cmake/samebits/SamebitsCudaRuntime.cmake"])

        if self.options.with_c:
            self._component("c", "samebits::c", "samebits").libs = ["samebits_c"]

    def _component(self, name, cmake_target, pkg_config):
        component = self.cpp_info.components[name]
        component.set_property("cmake_target_name", cmake_target)
        component.set_property("pkg_config_name", pkg_config)
        return component
