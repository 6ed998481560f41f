#!/usr/bin/env bash
# Installs what the build needs and is missing, on Debian 12 or a system alike.
#   tools/setup.sh build   compiler, CMake and what fpinspect is made of
#   tools/setup.sh test    besides these what the tests need
set -euo pipefail

packages=(g++ cmake ninja-build libcli11-dev nlohmann-json3-dev zlib1g-dev)
if [[ "${1:-}" == test ]]; then
  packages+=(libboost1.81-dev libgtest-dev libgmock-dev librapidcheck-dev libeigen3-dev
             ccache gappa sollya doxygen python3 python3-dev python3-venv
             clang lld wasi-libc libc++-14-dev-wasm32 libclang-rt-14-dev-wasm32)  # fpinspect explorer
fi

missing=()
for package in "${packages[@]}"; do
  state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [[ "$state" == installed ]] || missing+=("$package")
done
((${#missing[@]})) || exit 0

echo "installing: ${missing[*]}" >&2
as_root=()
if [[ $(id -u) != 0 ]]; then
  command -v sudo >/dev/null || { echo "setup: run as root, or install: ${missing[*]}" >&2; exit 1; }
  as_root=(sudo)
fi
"${as_root[@]}" apt-get update -qq >&2
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
