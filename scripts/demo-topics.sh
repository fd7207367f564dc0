#!/usr/bin/env bash
# Topics of this machine's own package descriptions, with four members; ends with a page to explore them.
#   SWEEPS=n draws each token's topic n times
set -euo pipefail
cd "$(dirname "$0")/.."

python=${SHOAL_PYTHON:-$PWD/.venv/bin/python}
shoal=$(dirname "$python")/shoal
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A package a line: its name, a tab, its description without line breaks. Where packages come in several versions the last one counts.
LC_ALL=C.UTF-8 apt-cache dumpavail 2>/dev/null | awk '
  function done() { if (name != "" && text != "") texts[name] = text; name = text = ""; inside = 0 }
  /^Package: / { done(); name = $2; next }
  /^Description(-[a-z]+)?: / { sub(/^[^:]*: /, ""); text = $0; inside = 1; next }
  /^ / && inside { line = $0; sub(/^ \.?/, "", line); text = text " " line; next }
  { inside = 0 }
  END { done(); for (name in texts) { gsub(/\t/, " ", texts[name]); print name "\t" texts[name] } }' | LC_ALL=C sort >"$work/packages.tsv"
if [[ $(wc -l <"$work/packages.tsv") -lt 100 ]]; then
  echo "demo-topics: this machine knows of no packages: apt-get update fetches their descriptions; or shoal topics train on texts of your own" >&2
  exit 2
fi

model=runs/packages.topics
rm -rf "$model"
mkdir -p runs
"$shoal" run -n 4 --name demo-topics -- \
  "$shoal" topics train "$work/packages.tsv" --column 2 --min-df 5 -k 100 --sweeps "${SWEEPS:-150}" --output "$model"
