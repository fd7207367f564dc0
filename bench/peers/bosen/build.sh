#!/usr/bin/env bash
# Builds bench/peers/bosen/member.cc with the sources of Bösen (sailing-pmls/bosen on GitHub, tried at its last commit of January 2017), outside this
# tree, beside a Release build of Shoal. Needs Debian's cppzmq-dev, libgoogle-glog-dev, libgflags-dev, libsnappy-dev, libleveldb-dev, libyaml-cpp-dev
# and libboost-{thread,system,date-time}-dev. The sources are of 2015: newer compilers want includes that were implied then.
#   bench/peers/bosen/build.sh BOSEN_SOURCES FOLDER      makes FOLDER/bosen_member
set -euo pipefail
bosen=$(realpath "$1")
mkdir -p "$2"
folder=$(realpath "$2")
cd "$(dirname "$0")/../../.."
build=${SHOAL_BUILD:-$PWD/build/release}
compiler=(g++)
if command -v ccache > /dev/null; then compiler=(ccache g++); fi
flags=(-O3 -std=c++20 -fpermissive -w -pthread -DPETUUM_MAX_NUM_CLIENTS=128 -I"$bosen/src" -I"$PWD" -Ibench/peers/bosen)
for header in atomic cstddef cstdint cstring functional iostream limits memory mutex sstream string thread; do flags+=(-include $header); done
objects=()
while read -r source; do
  object=$folder/$(basename "$source" .cpp).o
  "${compiler[@]}" "${flags[@]}" -c "$source" -o "$object"
  objects+=("$object")
done < <(find "$bosen"/src/petuum_ps "$bosen"/src/petuum_ps_common -name '*.cpp' | sort)
"${compiler[@]}" "${flags[@]}" -c bench/peers/bosen/member.cc -o "$folder/member.o"
libraries=()
for room in learn replica factor exchange collective table data net topo packing observe core; do libraries+=("$build/shoal/$room/libshoal_$room.a"); done
g++ -pthread "$folder/member.o" "${objects[@]}" -Wl,--start-group "${libraries[@]}" -Wl,--end-group -o "$folder/bosen_member" -lboost_thread -lboost_system -lglog -lgflags -lsnappy \
  -lleveldb -lyaml-cpp -lzmq -lhwy -lz -llzma -lbz2 -lzstd -lsodium -lClp -lCoinUtils -lfmt -lpugixml
