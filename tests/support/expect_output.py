"""Runs a program whose exit status and output must both be right; CTest's PASS_REGULAR_EXPRESSION
looks at the output alone.

usage: expect_output.py [--status N] PATTERN PROGRAM [ARGUMENTS...]

PATTERN is searched in standard output and error together; a dot also matches a line's end. The
status is 0 unless given.
"""

import re
import subprocess
import sys

arguments = sys.argv[1:]
status = 0
if arguments[0] == "--status":
    status = int(arguments[1])
    arguments = arguments[2:]
pattern, command = arguments[0], arguments[1:]
result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                        errors="replace", check=False)
sys.stdout.write(result.stdout)
sys.stdout.flush()
if result.returncode != status:
    sys.exit(f"{command[0]}: exit status {result.returncode}, expected {status}")
if not re.search(pattern, result.stdout, re.DOTALL):
    sys.exit(f"{command[0]}: nothing printed matches /{pattern}/")
