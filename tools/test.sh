#!/usr/bin/env bash
# Installs what is missing, builds everything and runs every test that needs no GPU.
#   tools/test.sh [--all] [--preset dev|asan-ubsan|cuda] [ctest arguments]
#   --all  also compiles the CUDA parts for every architecture that users get; else for one (sm_90)
set -euo pipefail
cd "$(dirname "$0")/.."

preset=dev architectures=90
if [[ "${1:-}" == --all ]]; then
  architectures="80-real;89-real;90"
  shift
fi
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

cmake --preset "$preset" --no-warn-unused-cli -DCMAKE_CUDA_ARCHITECTURES="$architectures"
cmake --build --preset "$preset"
ctest --preset "$preset" "$@"
