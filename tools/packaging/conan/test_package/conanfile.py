"""Builds and runs outside programs in C++ and C against the Conan package."""

import io
import os

from conan import ConanFile
from conan.errors import ConanException
from conan.tools.build import can_run
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout


class SamebitsTestConan(ConanFile):
    settings = "os", "arch", "compiler", "build_type"
    generators = "CMakeDeps", "PkgConfigDeps"

    def requirements(self):
        self.requires(self.tested_reference_str)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.user_presets_path = False
        options = self.dependencies["samebits"].options
        for option in ("with_c", "with_cuda"):
            toolchain.cache_variables[option.upper()] = bool(options.get_safe(option))
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def test(self):
        if not can_run(self):
            return
        version = self.dependencies["samebits"].ref.version
        for program in ("consumer", "c_consumer", "by_pkg_config"):
            path = os.path.join(self.cpp.build.bindir, program)
            if program != "consumer" and not os.path.exists(path):
                continue
            output = io.StringIO()
            self.run(path, stdout=output, env="conanrun")
            self.output.info(f"{program}: {output.getvalue().strip()}")
            if "e4m3 448" not in output.getvalue() or f"version {version}" not in output.getvalue():
                raise ConanException(f"{program} printed: {output.getvalue()}")
