#!/usr/bin/env bash
# Builds a release of the library and fpinspect, and judges a real tensor file: formats, loss scale, losses.
#   tools/run.sh [fpinspect arguments]    default: tensor tests/data/gpt_sample.safetensors
# Paths in the arguments are relative to the caller's folder.
set -euo pipefail
root=$(CDPATH='' cd "$(dirname "$0")/.." && pwd)

# Everything is built, not fpinspect alone, so that `cmake --install build/release` works afterwards.
(
  cd "$root"
  tools/setup.sh build
  cmake --preset release
  cmake --build --preset release
) >&2

if ! (($#)); then
  cd "$root"
  set -- tensor tests/data/gpt_sample.safetensors
fi
exec "$root/build/release/tools/fpinspect/fpinspect" "$@"
