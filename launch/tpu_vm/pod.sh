#!/usr/bin/env bash
# A TPU pod slice from creation to deletion; every command of gcloud goes through `run`.
set -euo pipefail

usage() {
  cat <<'HELP'
Trains on a TPU pod slice of Google Cloud: one command for each stage of its life.

usage: launch/tpu_vm/pod.sh STAGE --name=NAME --zone=ZONE [options] [-- TRAINING OPTIONS]

  create   makes the slice                              needs --type
  setup    copies HEAD to all workers and installs it   takes --bucket, --extensions
  train    starts the training on all workers           needs -- --config=... and --workdir=...;
                                                        takes --env
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
  --extensions=PATHS  folders with parts of your own, separated as in PATH, that setup copies as
                    extensions/0, extensions/1, ... (what ATTENTION_JAX_EXTENSIONS names here)
  --env=NAME=VALUE  a variable of the training, any number of times; none is passed on by itself
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

# What a worker asks before it starts or stops a training: the number may be another program's now.
is_training="grep -qs launch.supervise /proc/\$(cat train.pid 2> /dev/null)/cmdline"

# Copies the folders of --extensions to all workers, as attention_jax/extensions/0 and so on.
copy_extensions() {
  local packed=$1/extensions number
  [ "${#roots[@]}" -gt 0 ] || return 0
  for number in "${!roots[@]}"; do
    run mkdir -p "$packed/$number"
    run cp -R "${roots[number]}/." "$packed/$number"
  done
  run tar -czf "$packed.tar.gz" --exclude=__pycache__ -C "$1" extensions
  tpu scp "$packed.tar.gz" "$name:extensions.tar.gz" --worker=all
  on_workers all "tar -xzf extensions.tar.gz -C attention_jax"
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

name="" zone="" project="" type="" version="" bucket="" worker=0 spot="" dry_run=0
extensions=${ATTENTION_JAX_EXTENSIONS:-} variables=() training=()
while [ $# -gt 0 ]; do
  case "$1" in
    --help | -h) usage && exit 0 ;;
    --name=*) name=${1#*=} ;;
    --zone=*) zone=${1#*=} ;;
    --project=*) project=${1#*=} ;;
    --type=*) type=${1#*=} ;;
    --version=*) version=${1#*=} ;;
    --bucket=*) bucket=${1#*=} ;;
    --extensions=*) extensions=${1#*=} ;;
    --env=*) variables+=("${1#*=}") ;;
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
    --dry-run | --spot | --name=* | --zone=* | --project=* | --type=* | --version=* | --bucket=* | \
      --extensions=* | --env=* | --worker=*)
      fail "${argument%%=*}: expected before --, found after it, where the options of the training are"
      ;;
  esac
done
[ ${#training[@]} -eq 0 ] || [ "$stage" = train ] || fail "expected nothing after -- for $stage, found '${training[0]}'"
[ ${#variables[@]} -eq 0 ] || [ "$stage" = train ] || fail "--env: expected with train only, found with $stage"
for variable in ${variables[@]+"${variables[@]}"}; do
  [[ $variable =~ ^[A-Za-z_][A-Za-z0-9_]*= ]] || fail "--env: expected NAME=VALUE, found '$variable'"
done

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
    IFS=: read -ra roots <<< "$extensions"
    for root in ${roots[@]+"${roots[@]}"}; do
      [ -d "$root" ] || fail "--extensions: expected folders, found '$root'"
    done
    # A folder that nobody else can have made or write to, and that goes however this ends.
    folder=${TMPDIR:-/tmp}/attention_jax.XXXXXX
    if [ "$dry_run" = 0 ]; then
      folder=$(mktemp -d "$folder")
      trap 'rm -rf "$folder"' EXIT
    fi
    archive=$folder/attention_jax.tar.gz
    run git archive --format=tar.gz "--output=$archive" HEAD
    tpu scp "$archive" "$name:attention_jax.tar.gz" --worker=all
    on_workers all "mkdir -p attention_jax && rm -rf attention_jax/extensions && tar -xzf attention_jax.tar.gz -C attention_jax && bash attention_jax/launch/tpu_vm/setup.sh ${bucket#gs://}"
    copy_extensions "$folder"
    ;;
  train)
    [[ " ${training[*]-} " == *" --config="* ]] || fail "expected -- --config=FILE and --workdir=DIRECTORY, found no --config="
    [[ " ${training[*]-} " == *" --workdir="* ]] || fail "expected -- --config=FILE and --workdir=DIRECTORY, found no --workdir="
    environment="ATTENTION_JAX_DISTRIBUTED=auto PYTHON=.venv/bin/python"
    environment+=" ATTENTION_JAX_EXTENSIONS=\$(ls -d extensions/[0-9]* 2> /dev/null | paste -sd:)"
    for variable in ${variables[@]+"${variables[@]}"}; do
      environment+=" ${variable%%=*}=$(quoted "${variable#*=}")"
    done
    # In a session of its own, which lives on when the connection ends; $! is the supervisor's.
    supervised="launch/supervise.sh .venv/bin/python -m launch.train $(quoted "${training[@]}")"
    refuse="echo \"error: \$(hostname): a training runs already; stop it first\" >&2; exit 2"
    on_workers all "cd attention_jax && if $is_training; then $refuse; fi && { $environment setsid nohup $supervised >> train.log 2>&1 < /dev/null & echo \$! > train.pid; }"
    ;;
  logs) on_workers "$worker" "tail -n 50 -F attention_jax/train.log" ;;
  stop)
    stop="kill -TERM \$(cat train.pid)" none="echo \"\$(hostname): no training runs\""
    on_workers all "cd attention_jax && if $is_training; then $stop; else $none; fi"
    ;;
  delete) tpu delete "$name" --quiet ;;
esac
