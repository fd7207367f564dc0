#!/usr/bin/env bash
# What is too long for every submission: the second compiler, clang-tidy, fuzzing, and each test many times over in an
# order that changes, so that what depends on luck shows.
#   SEEDS=5000 of each protocol; ROUNDS=50 of each test; FUZZ_SECONDS=900 for each fuzz target, which keeps what it has found in build/corpus
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${ROUNDS:-50}
fuzz_seconds=${FUZZ_SECONDS:-900}
python=${SHOAL_PYTHON:-$PWD/.venv/bin/python}

scripts/setup.sh test
scripts/build.sh all
cmake --preset clang --log-level=WARNING >/dev/null
ninja -C build/clang --quiet
ctest --test-dir build/clang -j2 --output-on-failure
scripts/tidy.sh

cmake --preset fuzz --log-level=WARNING >/dev/null
ninja -C build/fuzz --quiet fuzz/all
for target in build/fuzz/fuzz/fuzz_*; do
  corpus=build/corpus/$(basename "$target")
  mkdir -p "$corpus"
  "$target" -max_total_time="$fuzz_seconds" -print_final_stats=1 -artifact_prefix="$corpus-" "$corpus"
done

# Protocols on the scripted network: what a seed decides is who moves, dies and is slow.
SHOAL_SEEDS=${SEEDS:-5000} ctest --test-dir build/release -R 'table/(protocol|losses|policies|snapshot)|replica|net/losses' --output-on-failure
ctest --test-dir build/release -j2 --schedule-random --repeat until-fail:"$rounds" --output-on-failure
"$python" -m pytest -q python/tests
scripts/demo.sh
scripts/deb.sh
