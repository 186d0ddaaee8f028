#!/usr/bin/env bash
# A TPU pod slice from creation to deletion; every command of gcloud goes through `run`.
set -euo pipefail

usage() {
  cat <<'HELP'
Trains on a TPU pod slice of Google Cloud: one command for each stage of its life.

usage: launch/tpu_vm/pod.sh STAGE --name=NAME --zone=ZONE [options] [-- TRAINING OPTIONS]

  create   makes the slice                              needs --type
  setup    copies HEAD to all workers and installs it   takes --bucket
  train    starts the training on all workers           needs -- --config=... and --workdir=...
  logs     follows the log of a worker                  takes --worker (0)
  stop     has the training save and end
  delete   deletes the slice

  --name=NAME       of the slice
  --zone=ZONE       such as us-west4-a
  --project=NAME    instead of gcloud's own setting
  --type=TYPE       v4-32, v5litepod-16, v5p-16, v6e-16, ...
  --version=NAME    runtime version, instead of the usual one of the type
  --spot            may be taken away; then create, set up and train again, and it continues
  --bucket=NAME     a bucket of Cloud Storage that setup mounts at ~/runs, on all workers
  --worker=N        whose log
  --dry-run         prints the commands that would be run, and runs none

for example, from the root of the repository:
  launch/tpu_vm/pod.sh create --name=pod --zone=us-west4-a --type=v5litepod-16 --spot
  launch/tpu_vm/pod.sh setup --name=pod --zone=us-west4-a --bucket=my-runs
  launch/tpu_vm/pod.sh train --name=pod --zone=us-west4-a -- \
      --config=configs/bahdanau2015.py:multi30k --workdir=runs/multi30k
  launch/tpu_vm/pod.sh logs --name=pod --zone=us-west4-a

--workdir must be on storage that all workers share: runs/... is, with --bucket. Mistakes are
answered with one line and code 2; else the exit code is that of the command that failed.
HELP
}

fail() {
  echo "error: $1" >&2
  exit 2
}

# Words as a shell reads them again, in quotes only where need be; `printf %q` escapes every space.
quoted() {
  local word words="" apostrophe="'\\''"
  for word in "$@"; do
    case "$word" in
      '' | *[!A-Za-z0-9_./:=,@%+-]*) words="$words '${word//\'/$apostrophe}'" ;;
      *) words="$words $word" ;;
    esac
  done
  echo "${words# }"
}

run() {
  if [ "$dry_run" = 1 ]; then
    quoted "$@"
  else
    "$@"
  fi
}

# gcloud's commands for TPU VMs, with what all of them are told.
tpu() {
  local verb=$1
  shift
  run gcloud compute tpus tpu-vm "$verb" "$@" "--zone=$zone" ${project:+"--project=$project"}
}

on_workers() {
  tpu ssh "$name" "--worker=$1" "--command=$2"
}

require() {
  [ -n "$2" ] || fail "--$1: expected a value, found none"
}

runtime_version() {
  case "$1" in
    v4-*) echo tpu-ubuntu2204-base ;;
    v5litepod-*) echo v2-alpha-tpuv5-lite ;;
    v5p-*) echo v2-alpha-tpuv5 ;;
    v6e-*) echo v2-alpha-tpuv6e ;;
  esac
}

stage=${1:-}
case "$stage" in
  create | setup | train | logs | stop | delete) shift ;;
  *)
    for argument in "$@"; do
      case "$argument" in --help | -h) usage && exit 0 ;; esac
    done
    fail "expected a stage (create, setup, train, logs, stop, delete), found '${stage:-none}'"
    ;;
esac

name="" zone="" project="" type="" version="" bucket="" worker=0 spot="" dry_run=0 training=()
while [ $# -gt 0 ]; do
  case "$1" in
    --help | -h) usage && exit 0 ;;
    --name=*) name=${1#*=} ;;
    --zone=*) zone=${1#*=} ;;
    --project=*) project=${1#*=} ;;
    --type=*) type=${1#*=} ;;
    --version=*) version=${1#*=} ;;
    --bucket=*) bucket=${1#*=} ;;
    --worker=*) worker=${1#*=} ;;
    --spot) spot=--spot ;;
    --dry-run) dry_run=1 ;;
    --)
      shift
      training=("$@")
      break
      ;;
    *) fail "unexpected option '$1'; see --help" ;;
  esac
  shift
done

require name "$name"
require zone "$zone"
[[ $name =~ ^[a-z]([a-z0-9-]*[a-z0-9])?$ ]] ||
  fail "--name: expected small letters, digits and hyphens, a letter first, found '$name'"
[[ $bucket =~ ^(gs://)?[a-z0-9._-]*$ ]] || fail "--bucket: expected the name of a bucket, found '$bucket'"
[[ $worker =~ ^([0-9]+|all)$ ]] || fail "--worker: expected a number or all, found '$worker'"
for argument in ${training[@]+"${training[@]}"}; do
  case "$argument" in
    --dry-run | --spot | --name=* | --zone=* | --project=* | --type=* | --version=* | --bucket=* | --worker=*)
      fail "${argument%%=*}: expected before --, found after it, where the options of the training are"
      ;;
  esac
done
[ ${#training[@]} -eq 0 ] || [ "$stage" = train ] || fail "expected nothing after -- for $stage, found '${training[0]}'"

case "$stage" in
  create)
    require type "$type"
    version=${version:-$(runtime_version "$type")}
    [[ $type =~ ^v[0-9a-z]+-[0-9]+$ && -n $version ]] ||
      fail "--type: expected one such as v4-32, v5litepod-16, v5p-16 or v6e-16, found '$type' (or give --version)"
    tpu create "$name" "--accelerator-type=$type" "--version=$version" ${spot:+"$spot"}
    ;;
  setup)
    [ -f launch/train.py ] || fail "expected to be called from the root of the repository, found $PWD"
    # A folder that nobody else can have made or write to, and that goes however this ends.
    folder=${TMPDIR:-/tmp}/attention_jax.XXXXXX
    if [ "$dry_run" = 0 ]; then
      folder=$(mktemp -d "$folder")
      trap 'rm -rf "$folder"' EXIT
    fi
    archive=$folder/attention_jax.tar.gz
    run git archive --format=tar.gz "--output=$archive" HEAD
    tpu scp "$archive" "$name:attention_jax.tar.gz" --worker=all
    on_workers all "mkdir -p attention_jax && tar -xzf attention_jax.tar.gz -C attention_jax && bash attention_jax/launch/tpu_vm/setup.sh ${bucket#gs://}"
    ;;
  train)
    [[ " ${training[*]-} " == *" --config="* ]] || fail "expected -- --config=FILE and --workdir=DIRECTORY, found no --config="
    [[ " ${training[*]-} " == *" --workdir="* ]] || fail "expected -- --config=FILE and --workdir=DIRECTORY, found no --workdir="
    # In a session of its own, which lives on when the connection ends; $! is the supervisor's.
    supervised="launch/supervise.sh .venv/bin/python -m launch.train $(quoted "${training[@]}")"
    environment="ATTENTION_JAX_DISTRIBUTED=auto PYTHON=.venv/bin/python"
    on_workers all "cd attention_jax && { $environment setsid nohup $supervised >> train.log 2>&1 < /dev/null & echo \$! > train.pid; }"
    ;;
  logs) on_workers "$worker" "tail -n 50 -F attention_jax/train.log" ;;
  stop) on_workers all "kill -TERM \$(cat attention_jax/train.pid)" ;;
  delete) tpu delete "$name" --quiet ;;
esac
