#!/usr/bin/env bash
# Installs what is missing, builds the tests that need no GPU, and runs them.
#   tools/test.sh [--all] [--architectures LIST] [--preset dev|asan-ubsan|cuda] [ctest arguments]
#   --all                 the deep tier too: whole input spaces, misuse that must not compile, mutants,
#                         installs, and (built, not run) the programs for a GPU; see docs/testing.md
#   --architectures LIST  GPUs to compile for, as in CMAKE_CUDA_ARCHITECTURES; "all" is those that users
#                         get (sm_80, sm_89, sm_90). Default: sm_90
set -euo pipefail
cd "$(dirname "$0")/.."

preset=dev architectures=90 options=() all=no
while (($#)); do
  case $1 in
    --all) all=yes options+=(-DSAMEBITS_DEEP_TESTS=ON) ;;
    --architectures) architectures=$2; shift ;;
    --preset) preset=$2; shift ;;
    *) break ;;
  esac
  shift
done
[[ $architectures != all ]] || architectures="80-real;89-real;90"

tools/setup.sh test

# NumPy and ml_dtypes are witnesses of the conversions; nanobind builds the Python package, pytest
# and mypy test it. They live in a folder of their own.
if [[ ! -x .venv/bin/python ]]; then
  python3 -m venv .venv
fi
if ! .venv/bin/python -c 'import numpy, ml_dtypes' 2>/dev/null; then
  .venv/bin/python -m pip install --quiet --disable-pip-version-check -r tests/witness/requirements.txt
fi
if ! .venv/bin/python -c 'import hypothesis, mypy, nanobind, nanobind_backend, pytest, safetensors, sphinx' 2>/dev/null; then
  .venv/bin/python -m pip install --quiet --disable-pip-version-check -r python/requirements-test.txt
fi
export SAMEBITS_PYTHON="$PWD/.venv/bin/python"

# Solvers prove the conversions.
if [[ $all == yes ]] && ! .venv/bin/python -c 'import bitwuzla, z3' 2>/dev/null; then
  .venv/bin/python -m pip install --quiet --disable-pip-version-check -r tests/proofs/requirements.txt
fi

# PyTorch for CPUs, in an environment of its own, because the package must also work without it: the
# packages of .venv and the wheel for CUDA without CUDA's libraries, which are 2.7 GB. It is fetched while
# the tests are built.
install_torch() {
  local torch=.venv-torch/bin/python
  if $torch -c 'import torch' 2>/dev/null; then return; fi
  python3 -m venv .venv-torch
  $torch -m pip install --quiet --disable-pip-version-check --no-deps -r python/requirements-torch.txt
  $SAMEBITS_PYTHON -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
    >"$($torch -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/tests.pth"
  $torch python/tests/torch_without_cuda.py
}
torch_installed=
if [[ $all == yes ]]; then
  trap wait EXIT  # also when the build fails: nothing goes on behind the script's back
  (install_torch) & torch_installed=$!
  export SAMEBITS_TORCH_PYTHON="$PWD/.venv-torch/bin/python" SAMEBITS_REQUIRE_TORCH=1

  # The test of the wheel compiles the library once more with the same options: ccache has its objects.
  export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache
  export CCACHE_DIR="$PWD/.cache/ccache" CCACHE_BASEDIR="$PWD" CCACHE_SLOPPINESS=pch_defines,time_macros
fi

cmake --preset "$preset" --no-warn-unused-cli -DCMAKE_CUDA_ARCHITECTURES="$architectures" "${options[@]}"
cmake --build --preset "$preset"
[[ -z $torch_installed ]] || wait "$torch_installed"
ctest --preset "$preset" "$@"
