#!/usr/bin/env bash
# An installed Shoal serves programs outside the project: through pkg-config, and through find_package with PyTorch.
#   test.sh BUILD PROGRAM COMPILER PYTHON      PYTHON: empty where Shoal was built without PyTorch
set -euo pipefail
build=$1 program=$2 compiler=$3 python=$4
[[ -z $python || -x $python ]] || { echo "no such Python: $python"; exit 1; }
sources=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/usr" >/dev/null
export PKG_CONFIG_PATH=$work/usr/lib/pkgconfig:$work/usr/lib/$(gcc -print-multiarch)/pkgconfig
cd "$work"  # run folders go here
shoal=$work/usr/bin/shoal

[[ $("$shoal" --version) == "shoal $(pkg-config --modversion shoal)" ]]
[[ -s $work/usr/share/man/man1/shoal-run.1 ]]
[[ -s $work/usr/share/bash-completion/completions/shoal ]]

read -ra flags < <(pkg-config --cflags --libs shoal)
"$compiler" -std=c++20 -o sum "$program" "${flags[@]}"
sum=$("$shoal" run -n 3 -- ./sum 2>/dev/null)
[[ $(grep -c '] 6$' <<< "$sum") == 3 ]] || { echo "expected 6 from each of 3 members, got: $sum"; exit 1; }

mkdir plain
printf '%s\n' 'cmake_minimum_required(VERSION 3.25)' 'project(plain CXX)' 'find_package(shoal REQUIRED)' \
  "add_executable(sum \"$program\")" 'target_link_libraries(sum PRIVATE shoal::collective)' > plain/CMakeLists.txt
cmake -S plain -B plain/build -G Ninja -DCMAKE_PREFIX_PATH="$work/usr" -DSHOAL_PYTHON=/nowhere >/dev/null
ninja -C plain/build --quiet
[[ $(plain/build/sum) == 1 ]]

[[ -n $python ]] || exit 0
cmake -S "$sources/examples" -B example -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$work/usr" \
  -DCMAKE_CXX_COMPILER_LAUNCHER="$(command -v ccache || true)" -DSHOAL_PYTHON="$python" >/dev/null
ninja -C example --quiet
said=$("$shoal" run -n 2 -- example/fashion /usr/share/datasets/fashion-mnist 30)
[[ $said =~ 'test accuracy 0.'([0-9]{2}) && ${BASH_REMATCH[1]} -ge 35 ]] || { echo "it did not learn: $said"; exit 1; }
if said=$(example/fashion /nowhere 2>&1); then echo "missing data went unnoticed"; exit 1; fi
[[ $said == "fashion: /nowhere/"* && $(wc -l <<< "$said") == 1 ]]
