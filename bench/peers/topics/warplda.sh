#!/usr/bin/env bash
# Builds WarpLDA (thu-ml/warplda on GitHub, tried at c97265d of 2019) outside this tree. Needs Debian's libgflags-dev and libnuma-dev. Its --mh is parsed
# and not used: how many proposals a pass makes is compiled in, so that there is a program for one (as released) and one for four.
#   bench/peers/topics/warplda.sh SOURCES FOLDER      makes FOLDER/{format,warplda1,warplda4}
set -euo pipefail
sources=$(realpath "$1")/src
mkdir -p "$2"
flags=(-O3 -march=native -std=c++14 -fopenmp -w -include stdexcept -include cstring -include cstdlib)  # headers that older compilers implied
common=("$sources"/{Bigraph,AdjList,Vocab,NumaArray,clock}.cpp)
g++ "${flags[@]}" "$sources/format.cpp" "${common[@]}" -o "$2/format" -lgflags -lnuma
for proposals in 1 4; do
  copy=$(mktemp -d)
  cp "$sources"/*.[ch]pp "$sources"/*.h "$copy"
  sed -i "s/WarpLDA<1>/WarpLDA<$proposals>/" "$copy/main.cpp" "$copy/warplda.cpp" "$copy/warplda.hpp"
  g++ "${flags[@]}" "$copy"/{main,lda,warplda,Bigraph,AdjList,Vocab,NumaArray,clock}.cpp -o "$2/warplda$proposals" -lgflags -lnuma
  rm -r "$copy"
done
