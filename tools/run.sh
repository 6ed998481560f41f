#!/usr/bin/env bash
# Builds a release of fpinspect and judges a real tensor file: formats, loss scale, losses.
#   tools/run.sh [fpinspect arguments]    default: tensor tests/data/gpt_sample.safetensors
set -euo pipefail
cd "$(dirname "$0")/.."

tools/setup.sh build
cmake --preset release >&2
cmake --build --preset release --target fpinspect >&2

(($#)) || set -- tensor tests/data/gpt_sample.safetensors
exec build/release/tools/fpinspect/fpinspect "$@"
