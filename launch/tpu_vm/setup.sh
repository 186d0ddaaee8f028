#!/usr/bin/env bash
# Installs the project on a TPU VM, beside this file, and mounts a bucket at ~/runs; run by pod.sh.
# usage: launch/tpu_vm/setup.sh [BUCKET]
set -euo pipefail

bucket=${1:-}
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# The images' own Python is older than what the project needs; uv brings one, always the same one
# of its own version, which is the Makefile's.
python3 -m pip install --quiet --user uv==0.13.8
uv=$HOME/.local/bin/uv
"$uv" venv --quiet --clear --python 3.12 .venv
"$uv" pip install --quiet --compile-bytecode --python .venv/bin/python --require-hashes \
  -r requirements.txt -r requirements-tpu.txt

if [ -n "$bucket" ]; then
  # Whichever gcsfuse is newest: it has to go with the image's system and the bucket's service, and
  # no number depends on it.
  if ! command -v gcsfuse > /dev/null; then
    key=/usr/share/keyrings/cloud.google.asc
    curl -fsSL https://packages.cloud.google.com/apt/doc/apt-key.gpg | sudo tee "$key" > /dev/null
    echo "deb [signed-by=$key] https://packages.cloud.google.com/apt gcsfuse-$(lsb_release -cs) main" |
      sudo tee /etc/apt/sources.list.d/gcsfuse.list > /dev/null
    sudo apt-get -qq update
    sudo apt-get -qq install -y gcsfuse
  fi
  mkdir -p "$HOME/runs"
  mountpoint -q "$HOME/runs" || gcsfuse --implicit-dirs "$bucket" "$HOME/runs"
  ln -sfn "$HOME/runs" runs
fi
echo "$(hostname): ready"
