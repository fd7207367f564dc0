#!/usr/bin/env bash
# clang-tidy over every source, by the settings in .clang-tidy; with PyTorch's files if those are built.
set -euo pipefail
cd "$(dirname "$0")/.."
cmake --preset clang --log-level=WARNING >/dev/null
git ls-files 'shoal/*.cc' 'app/*.cc' ':(exclude,glob)shoal/nn/*.cc' | xargs -P "$(nproc)" -n 4 clang-tidy-19 -p build/clang --quiet
