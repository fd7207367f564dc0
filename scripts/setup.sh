#!/usr/bin/env bash
# Installs what is missing and nothing else: Debian packages, then the Python environment.
#   scripts/setup.sh [LIST...]     LIST names a scripts/packages-LIST.txt beyond packages.txt, and a
#                                  scripts/requirements-LIST.txt beyond requirements.txt where there is one
# SHOAL_PYTHON=/path/to/python uses that Python and its PyTorch; without it .venv is made.
set -euo pipefail
cd "$(dirname "$0")/.."

torch_version=2.13.0
cpu_wheels=https://download.pytorch.org/whl/cpu

fail() { printf 'shoal setup: %s\n' "$*" >&2; exit 2; }

install_packages() {
  local lists=(scripts/packages.txt) name missing=()
  for name in "$@"; do lists+=("scripts/packages-$name.txt"); done
  command -v dpkg-query >/dev/null ||
    fail "this is no Debian; install the counterparts of $(tr '\n' ' ' < scripts/packages.txt)by hand"
  local installed
  installed=" $(dpkg-query -W -f='${db:Status-Abbrev}${binary:Package}\n' | sed -n 's/^ii *//p' | sed 's/:.*//' | tr '\n' ' ') "
  while read -r name; do
    [[ $installed == *" $name "* ]] || missing+=("$name")
  done < <(cat "${lists[@]}")
  ((${#missing[@]})) || return 0

  local become=()
  if ((EUID != 0)); then
    command -v sudo >/dev/null || fail "run as root or with sudo, or install: ${missing[*]}"
    become=(sudo)
  fi
  echo "shoal setup: installing ${#missing[@]} packages: ${missing[*]}"
  "${become[@]}" apt-get update -qq
  "${become[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

has_torch() { "$python" -c 'import importlib.util as u, sys; sys.exit(u.find_spec("torch") is None)'; }

# A CPU build where the index offers one by that name, then from PyTorch's own CPU wheels,
# else what the index has (on some machines the only build there is).
install_torch() {
  echo "shoal setup: installing PyTorch $torch_version"
  "$python" -m pip install -q "torch==$torch_version+cpu" 2>/dev/null ||
    "$python" -m pip --retries 0 --timeout 5 install -q --extra-index-url "$cpu_wheels" \
      "torch==$torch_version+cpu" 2>/dev/null ||
    "$python" -m pip install -q "torch==$torch_version"
}

install_python() {
  if [[ -n ${SHOAL_PYTHON:-} ]]; then
    python=$SHOAL_PYTHON
    command -v "$python" >/dev/null || fail "SHOAL_PYTHON=$SHOAL_PYTHON is no program; unset it to let .venv be made"
    has_torch || fail "SHOAL_PYTHON=$SHOAL_PYTHON has no torch; unset it to let .venv be made"
  else
    python=.venv/bin/python
    [[ -x $python ]] || { echo "shoal setup: making .venv"; python3 -m venv .venv; }
  fi
  # A stamp for each choice of lists holds what was installed: a changed list is installed, an unchanged one costs nothing.
  local stamp wanted name lists=(scripts/requirements.txt)
  for name in "$@"; do
    [[ ! -f scripts/requirements-$name.txt ]] || lists+=("scripts/requirements-$name.txt")
  done
  stamp=$(IFS=-; echo ".venv/shoal-setup${*:+-$*}")
  wanted="$python $torch_version $(grep -hv '^#' "${lists[@]}" | tr '\n' ' ')"
  [[ -f $stamp && $(<"$stamp") == "$wanted" ]] && has_torch && return 0
  has_torch || install_torch
  "$python" -m pip install -q "${lists[@]/#/-r}"
  mkdir -p .venv && echo "$wanted" > "$stamp"
}

install_packages "$@"
install_python "$@"
