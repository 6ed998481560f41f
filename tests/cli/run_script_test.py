# tools/run.sh: the caller's folder, and what it builds. A substitute for CMake leaves the fpinspect under test
# where a build would put it.
import os
import shutil
import stat
import subprocess

import cli_support
from cli_support import CLEAN, FPINSPECT, floats, read_text, write_file, write_npy

TOOLS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools")


class RunScript(cli_support.CliTest):
    def program(self, path, text):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        write_file(path, f"#!/bin/sh\n{text}\n")
        os.chmod(path, stat.S_IRWXU)

    def setUp(self):
        super().setUp()
        self.checkout = self.path("the checkout")
        for name in ("run.sh", "setup.sh"):
            os.makedirs(f"{self.checkout}/tools", exist_ok=True)
            shutil.copy(f"{TOOLS}/{name}", f"{self.checkout}/tools/{name}")
        self.program(self.path("bin/dpkg-query"), "echo installed")
        self.program(self.path("bin/cmake"), 'echo "$@" >> cmake_calls; mkdir -p build/release/tools/fpinspect\n'
                     f'ln -sf "{os.path.abspath(FPINSPECT)}" build/release/tools/fpinspect/')

    def run_script(self, *arguments):
        caller = self.path("caller")
        os.makedirs(caller, exist_ok=True)
        write_npy(f"{caller}/x.npy", "<f4", (1, 2), floats(1, 2))
        environment = {**CLEAN, "PATH": f"{self.path('bin')}:{CLEAN['PATH']}"}
        return subprocess.run([f"{self.checkout}/tools/run.sh", *arguments], cwd=caller, env=environment,
                              capture_output=True, encoding="utf-8", timeout=60)

    def test_paths_are_relative_to_the_callers_folder(self):
        done = self.run_script("tensor", "x.npy", "--stats")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("x.npy", done.stdout)

    def test_without_arguments_the_sample_is_judged(self):
        os.makedirs(f"{self.checkout}/tests/data")
        shutil.copy(cli_support.SAMPLE, f"{self.checkout}/tests/data/")
        done = self.run_script()
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("tests/data/gpt_sample.safetensors: 10 tensors, 123904 values\n", done.stdout)

    def test_everything_that_an_installation_holds_is_built(self):
        self.run_script("formats")
        self.assertEqual(read_text(f"{self.checkout}/cmake_calls"),
                         "--preset release\n--build --preset release\n")
