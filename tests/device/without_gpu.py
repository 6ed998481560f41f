"""Runs a program of the device tests with every GPU hidden: it must fail, and say why.

usage: without_gpu.py PROGRAM [ARGUMENTS...]

Fails if the program succeeds, is ended by a signal, takes more than 30 seconds, or prints nothing
about the missing GPU.
"""

import os
import re
import subprocess
import sys

LIMIT = 30  # seconds

command = sys.argv[1:]
try:
    result = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=LIMIT,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        check=False,
    )
except subprocess.TimeoutExpired:
    sys.exit(f"{command[0]} still runs after {LIMIT} s without a GPU")
output = "\n".join(result.stdout.splitlines()[:40])
if result.returncode == 0:
    sys.exit(f"{command[0]} succeeds without a GPU:\n{output}")
if result.returncode < 0:
    sys.exit(f"{command[0]} is ended by signal {-result.returncode} without a GPU:\n{output}")
if not re.search("no usable GPU|no NVIDIA driver", result.stdout):
    sys.exit(f"{command[0]} fails without naming the missing GPU:\n{output}")
