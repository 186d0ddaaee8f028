#!/usr/bin/env bash
# Runs a training again until it is finished, whatever ends it: launch/supervise.sh --help
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
PYTHONPATH="$root${PYTHONPATH:+:$PYTHONPATH}" exec "${PYTHON:-python3}" -m launch.supervise "$@"
