#!/usr/bin/env bash
# Builds Release in build/release and installs the Python package and the `shoal` program beside the
# Python that holds PyTorch. The wheel reuses build/release: nothing is compiled twice.
#   scripts/build.sh [all]         all builds tests and benchmarks too
set -euo pipefail
cd "$(dirname "$0")/.."

python=${SHOAL_PYTHON:-$PWD/.venv/bin/python}
build=build/release
log=$build/install.log
if [[ ! -f $build/build.ninja ]] || ! grep -qxF "SHOAL_PYTHON:FILEPATH=$python" $build/CMakeCache.txt; then
  cmake --preset release -DSHOAL_PYTHON:FILEPATH="$python" --log-level=WARNING
fi
targets=(shoal_program _C)
[[ ${1:-} == all ]] && targets=(all)
quiet=()
[[ -t 1 ]] || quiet=(--quiet)  # a terminal shows one moving line
ninja -C $build "${quiet[@]}" "${targets[@]}"

# Installed anew only when the package's sources or what was linked are newer than the last installation.
stamp=$build/installed
newer=$(find pyproject.toml python/shoal $build/app/shoal $build/python -newer $stamp \
  \( -name '*.py' -o -name '*.toml' -o -name shoal -type f -o -name '*.so' \) -print -quit 2>/dev/null || true)
if [[ -f $stamp && -z $newer ]] && "$python" -c 'import importlib.util as u, sys; sys.exit(u.find_spec("shoal") is None)'; then
  exit 0
fi
if ! "$python" -m pip install --no-build-isolation --no-deps --force-reinstall . > $log 2>&1; then
  cat $log >&2
  exit 1
fi
"$python" -c 'import shoal'
touch $stamp
