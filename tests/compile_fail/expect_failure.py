"""Runs a compiler command that must fail with a message matching a pattern.

usage: expect_failure.py PATTERN COMMAND...
"""

import re
import subprocess
import sys

pattern, command = sys.argv[1], sys.argv[2:]
result = subprocess.run(command, capture_output=True, text=True, check=False)
errors = "\n".join(line for line in result.stderr.splitlines() if "error" in line)
if result.returncode == 0:
    sys.exit("compiled, but must not")
if not re.search(pattern, errors):
    sys.exit(f"failed without a message matching /{pattern}/:\n{result.stderr}")
