#!/usr/bin/env bash
# Everything that CI runs, on a clean checkout too: a Release build with its tests, the demo cut short, then the
# rooms without PyTorch under the address, undefined-behaviour and thread sanitizers.
# A part that fails does not hide the parts after it. The last line counts the tests.
set -uo pipefail
cd "$(dirname "$0")/.."
export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1:allocator_may_return_null=1
export UBSAN_OPTIONS=print_stacktrace=1
export SHOAL_CACHE=none   # no test finds what an earlier run has made
export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1

results=$PWD/build/results
rm -rf "$results"
mkdir -p "$results"
spent=''  # by each section
python=${SHOAL_PYTHON:-$PWD/.venv/bin/python}

# section NAME COMMAND...: its output under a header, its time, and a mark if it failed
section() {
  local name=$1 began=$SECONDS
  shift
  printf '\n==== %s\n' "$name"
  local failed=0
  "$@" || failed=1
  spent+="$name $((SECONDS - began)) s, "
  if ((failed)); then
    printf -- '---- %s: FAILED after %d s\n' "$name" $((SECONDS - began))
    touch "$results/$name.failed"
    return 1
  fi
  printf -- '---- %s: %d s\n' "$name" $((SECONDS - began))
}

# checked PRESET [CTEST ARGUMENT...]: more at a time than two cores, for many wait for others
checked() {
  local preset=$1
  shift
  ctest --test-dir "build/$preset" -j4 --output-on-failure --no-tests=error --output-junit "$results/$preset.xml" "$@"
}

build_address() { cmake --preset asan --log-level=WARNING >/dev/null && ninja -C build/asan --quiet; }

# Only tests that say THREADS are in it: what runs on the scripted network has one, and would only be slow here.
build_thread() { cmake --preset tsan --log-level=WARNING >/dev/null && ninja -C build/tsan --quiet shoal_tests; }

# Sanitizers are some ten times slower: fewer moments of deaths and fewer seeds are tried (nightly, all of them without), and what is long for its figures,
# not for what it touches, is left out.
for_figures='(learn|learn/topic|text)/real_sets|collective/(every_network|rings|verify_symmetry)|sim/(best_program|grids|executed)|learn/(sdca|topic/(long_document|samplers))|exchange/(followed_links|forecast)|app/topics_limits'
address() { build_address && SHOAL_KILLS=8 SHOAL_SEEDS=20 SHOAL_DELAYS=1 SHOAL_NETWORKS=100 checked asan -E "$for_figures"; }
thread() { build_thread && SHOAL_KILLS=50 checked tsan; }

# SHOAL_SEEDS: of each protocol on the scripted network. SHOAL_MOST_HOSTS: of networks with every program (nightly: all that bounds are exact for).
release() { SHOAL_SEEDS=250 SHOAL_MOST_HOSTS=24 checked release; }

# Each file by one of two processes: what a file shares among its tests is made once.
python_tests() { "$python" -m pytest -q -n 2 --dist loadfile -m 'not slow' --durations 40 --junitxml "$results/python.xml" python/tests; }

demo() { STEPS=20 timeout 300 scripts/demo.sh; }

# Both builds, beside Python tests, which mostly wait for processes and are given minutes.
build_beside() {
  renice -n 19 $BASHPID >/dev/null
  build_address
  build_thread
}

section setup scripts/setup.sh test || exit 1
if section build scripts/build.sh all; then
  section tests release
  build_beside >"$results/beside.log" 2>&1 &
  section python python_tests
  section demo demo && touch "$results/demo.passed"
fi
wait
section address address
section thread thread

printf '\n==== summary after %d s: %s\n' $SECONDS "${spent%, }"
exec "$python" scripts/count_tests.py "$results"
