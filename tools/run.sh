#!/usr/bin/env bash
# Builds a release of fpinspect and shows what each format does to a real tensor file.
#   tools/run.sh [fpinspect arguments]    default: tensor tests/data/gpt_sample.safetensors
set -euo pipefail
cd "$(dirname "$0")/.."

tools/setup.sh build
cmake --preset release >&2
cmake --build --preset release --target fpinspect >&2

(($#)) || set -- tensor tests/data/gpt_sample.safetensors
exec build/release/tools/fpinspect/fpinspect "$@"
