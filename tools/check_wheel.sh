#!/usr/bin/env bash
# Builds sdist and wheel of the Python package, checks both, and tests the wheel where nothing else is.
#   tools/check_wheel.sh [options of pip wheel, such as --config-settings cmake.define.SAMEBITS_CUDA=OFF]
# Fetches build tools and the packages of python/requirements-test.txt.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Where pip unpacks and compiles, and CMake's default compilers instead of Python's: ccache, if it is used, compares
# paths below the one and names of the others.
export TMPDIR=$work CCACHE_BASEDIR=$work CC=${CC:-cc} CXX=${CXX:-c++}

python3 -m venv "$work/tools"
"$work/tools/bin/pip" install --no-compile --quiet --disable-pip-version-check build auditwheel abi3audit \
  check-wheel-contents
"$work/tools/bin/python" -m build --quiet --sdist --outdir "$work/dist" .
"$work/tools/bin/pip" wheel --quiet --disable-pip-version-check --no-deps --wheel-dir "$work/dist" \
  "$@" "$work"/dist/samebits-*.tar.gz
ls -l "$work/dist"

wheel=("$work"/dist/samebits-*.whl)
"$work/tools/bin/auditwheel" show "${wheel[0]}"
"$work/tools/bin/abi3audit" --strict "${wheel[0]}"
"$work/tools/bin/check-wheel-contents" "${wheel[0]}"

python3 -m venv "$work/user"
"$work/user/bin/pip" install --no-compile --quiet --disable-pip-version-check "${wheel[0]}"
cd "$work"
"$work/user/bin/python" -m samebits | tee "$work/report"
grep -Fx "fpinspect $(realpath "$work/user/bin/fpinspect")" "$work/report"
for file in gpt_sample.safetensors adam.pt; do
  "$work/user/bin/fpinspect" tensor "$OLDPWD/tests/data/$file"
done
"$work/user/bin/pip" install --no-compile --quiet --disable-pip-version-check -r "$OLDPWD/python/requirements-test.txt" \
  -r "$OLDPWD/tests/witness/requirements.txt"
# All modules are in it, each that needs no torch imports, its examples hold, and type checkers find its types. The rest
# of the tests runs on the package of the build tree, whose code and sources are the same. The environment has no torch,
# whatever the caller requires.
modules() { (cd "$1" && find . -name '*.py' | sort); }
installed=$("$work/user/bin/python" -c 'import os, samebits; print(os.path.dirname(samebits.__file__))')
comm -23 <(modules "$OLDPWD/python/samebits") <(modules "$installed") | tee "$work/missing"
[[ ! -s $work/missing ]]
tests=("$OLDPWD"/python/tests/test_{doctests,errors,process,values}.py)
env -u SAMEBITS_REQUIRE_TORCH "$work/user/bin/python" -B -m pytest -q -p no:cacheprovider "${tests[@]}"
