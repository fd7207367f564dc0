#!/usr/bin/env bash
# Builds LightLDA (microsoft/LightLDA on GitHub, tried at de9cca4 of 2017) with its parameter server (microsoft/Multiverso, branch multiverso-initial)
# outside this tree, with Debian's libzmq3-dev, cppzmq-dev and libopenmpi-dev in place of what both would download.
#   bench/peers/topics/lightlda.sh SOURCES MULTIVERSO_SOURCES FOLDER      makes FOLDER/{lightlda,dump_binary}
set -euo pipefail
sources=$(realpath "$1")
server=$(realpath "$2")
mkdir -p "$3"
flags=(-O3 -std=c++14 -fpermissive -w -I"$server/include" -I"$server/include/multiverso" -I"$sources/src")
mpicxx "${flags[@]}" "$sources"/src/*.cpp "$server"/src/multiverso/*.cpp -o "$3/lightlda" -lzmq -lpthread
mpicxx "${flags[@]}" "$sources/preprocess/dump_binary.cpp" -o "$3/dump_binary"
