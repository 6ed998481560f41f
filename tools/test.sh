#!/usr/bin/env bash
# Installs what is missing, builds everything and runs every test that needs no GPU.
#   tools/test.sh [--preset dev|asan-ubsan|cuda] [ctest arguments]
set -euo pipefail
cd "$(dirname "$0")/.."

preset=dev
if [[ "${1:-}" == --preset ]]; then
  preset=$2
  shift 2
fi

tools/setup.sh test

# NumPy and ml_dtypes are witnesses of the conversions; they live in a folder of their own.
if [[ ! -x .venv/bin/python ]]; then
  python3 -m venv .venv
fi
if ! .venv/bin/python -c 'import numpy, ml_dtypes' 2>/dev/null; then
  .venv/bin/python -m pip install --quiet --disable-pip-version-check -r tests/witness/requirements.txt
fi
export SAMEBITS_PYTHON="$PWD/.venv/bin/python"

cmake --preset "$preset"
cmake --build --preset "$preset"
ctest --preset "$preset" "$@"
