#!/usr/bin/env bash
# What is too long for every submission: the second compiler, clang-tidy, fuzzing, and each test many times over in an
# order that changes, so that what depends on luck shows.
#   SEEDS=5000 of each protocol; ROUNDS=50 of each test; FUZZ_SECONDS=900 for each fuzz target, which keeps what it has found in build/corpus
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${ROUNDS:-50}
fuzz_seconds=${FUZZ_SECONDS:-900}
python=${SHOAL_PYTHON:-$PWD/.venv/bin/python}

scripts/setup.sh test nightly   # SimGrid, the oracle of sim/against_simgrid
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
for ((first = 1; first <= ${SEEDS:-5000}; first += 500)); do  # as many at a time as fit into CTest's limits
  SHOAL_FIRST_SEED=$first SHOAL_SEEDS=500 ctest --test-dir build/release -R 'table/(protocol|losses|snapshot|order|kept|encoding|calls|revision|bounds|handover|subscriptions)|replica|collective/(survivors|agreement)$' --output-on-failure
done
# Every program on every network, also the largest for which bounds are exact; with the data set where there is one. Longer than CTest's limits.
if [[ -z ${SHOAL_DATA:-} && -d ../shared/data ]]; then export SHOAL_DATA=$PWD/../shared/data; fi
SHOAL_MOST_HOSTS=64 timeout 14400 build/release/tests/collective/test_collective --gtest_filter='EveryNetwork.*'
SHOAL_DELAYS=100 timeout 7200 build/release/tests/exchange/test_exchange --gtest_filter='Timing.*'  # the same bits by every way
# Each victim after each event of the scripted network, and members lost over real sockets, at more moments and for longer than CTest's limits. Weekly:
# CHURN_SECONDS=28800.
SHOAL_KILLS=1000000000 timeout 7200 build/release/tests/collective/test_collective --gtest_filter='Kills/*'
SHOAL_KILLS=1000 SHOAL_STOPS=20 timeout 3600 build/release/tests/collective/test_collective --gtest_filter='SurvivorsTcp.*'
SHOAL_CHURN_SECONDS=${CHURN_SECONDS:-600} SHOAL_FAULTS=20 SHOAL_FIRST_SEED=$RANDOM timeout $((${CHURN_SECONDS:-600} + 3000)) \
  build/release/tests/collective/test_collective --gtest_filter='Churn.*:*Frozen*'
# As likely as MALLET's topics also after 40 and 50 sweeps, as the prototype's after 500.
SHOAL_SWEEPS=500 ctest --test-dir build/release -R 'learn/topic/real_sets$' --output-on-failure
ctest --test-dir build/release -j2 --schedule-random --repeat until-fail:"$rounds" --output-on-failure
"$python" -m pytest -q python/tests
SHOAL_SEEDS=20 "$python" -m pytest -q python/tests/test_table_seeds.py   # members as processes, over TCP
SHOAL_KILLS=20 "$python" -m pytest -q python/tests/test_killed_steps.py  # at drawn moments of overlapped iterations
scripts/demo.sh
scripts/deb.sh
