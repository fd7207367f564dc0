#!/usr/bin/env bash
# Builds the Debian packages from what is committed, in build/deb, and leaves them there.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh deb
rm -rf build/deb
mkdir -p build/deb/shoal
git archive HEAD | tar -x -C build/deb/shoal
(cd build/deb/shoal && dpkg-buildpackage -us -uc -b)
ls -1 build/deb/*.deb
