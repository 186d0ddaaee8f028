#!/usr/bin/env bash
# Runs N processes of this host that train together: launch/local.sh --help
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
PYTHONPATH="$root${PYTHONPATH:+:$PYTHONPATH}" exec "${PYTHON:-python3}" -m launch.local "$@"
