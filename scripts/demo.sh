#!/usr/bin/env bash
# Trains fcnet on Fashion-MNIST with four members, each on its own host behind a 200 Mbit/s link.
# The hosts are network namespaces; where those are not permitted the members share this machine's loopback.
#   STEPS=n ends after n steps
set -euo pipefail
cd "$(dirname "$0")/.."

# Namespaces need root; what the run writes still belongs to whoever asked for it.
if ((EUID != 0)) && command -v sudo >/dev/null; then
  mkdir -p runs
  sudo --preserve-env=STEPS,SHOAL_PYTHON "$0" && status=0 || status=$?
  sudo chown -R "$(id -u):$(id -g)" runs
  exit $status
fi

python=${SHOAL_PYTHON:-$PWD/.venv/bin/python}
shoal=$(dirname "$python")/shoal
data=/usr/share/datasets/fashion-mnist
lab=demo$$
on=()

trap '"$shoal" lab down "$lab" >/dev/null' EXIT
trap 'exit 143' TERM
trap 'exit 130' INT
if "$shoal" lab up -n 4 --rate 200mbit --name "$lab"; then
  on=(--lab "$lab")
else
  echo "demo: no hosts of its own here (see above); the four members use loopback, where links are not limited"
fi

"$shoal" run -n 4 "${on[@]}" --name demo -- \
  "$python" -m shoal.train fcnet --data "$data" --batch 128 --epochs 1 --seed 1 ${STEPS:+--steps "$STEPS"}
