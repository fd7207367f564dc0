#!/usr/bin/env bash
# What is too long for every submission: the second compiler, clang-tidy, and each test many times over in an order
# that changes, so that what depends on luck shows.
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${ROUNDS:-50}
python=${SHOAL_PYTHON:-$PWD/.venv/bin/python}

scripts/setup.sh test
scripts/build.sh all
cmake --preset clang --log-level=WARNING >/dev/null
ninja -C build/clang --quiet
ctest --test-dir build/clang -j2 --output-on-failure
scripts/tidy.sh
ctest --test-dir build/release -j2 --schedule-random --repeat until-fail:"$rounds" --output-on-failure
"$python" -m pytest -q python/tests
scripts/demo.sh
