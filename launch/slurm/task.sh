#!/usr/bin/env bash
# One task of train.sbatch: takes its share of the node's GPUs, and makes the worst code the highest.
#
# usage, by srun: launch/slurm/task.sh COMMAND [ARGUMENT ...]
set -u

# How many tasks this node has, from counts such as "8(x2),4": two nodes of eight tasks, one of four.
tasks_of_this_node() {
  local before=0 group counts
  IFS=, read -ra counts <<<"${SLURM_STEP_TASKS_PER_NODE:-1}"
  for group in "${counts[@]}"; do
    [[ $group =~ ^([0-9]+)(\(x([0-9]+)\))?$ ]] || continue
    before=$((before + ${BASH_REMATCH[3]:-1}))
    [ "${SLURM_NODEID:-0}" -ge "$before" ] || break
  done
  echo "${BASH_REMATCH[1]}"
}

# JAX by itself gives a task of SLURM the GPU of its number, whatever it sees. It may see all GPUs
# that the job has on the node, to be shared among its tasks, or (--gpus-per-task) its own.
IFS=, read -ra gpus <<<"${CUDA_VISIBLE_DEVICES:-}"
if [ "${#gpus[@]}" -gt 0 ] && [ "${SLURM_NTASKS:-1}" -gt 1 ]; then
  share=${#gpus[@]} first=0
  if [ "${#gpus[@]}" -ge "${SLURM_GPUS_ON_NODE:-0}" ]; then
    tasks=$(tasks_of_this_node)
    share=$((${#gpus[@]} / tasks))
    first=$((${SLURM_LOCALID:-0} * share))
    if [ $((share * tasks)) -ne "${#gpus[@]}" ]; then
      echo "error: expected tasks that share the ${#gpus[@]} GPUs of a node evenly, found $tasks" >&2
      exit 202
    fi
  fi
  JAX_LOCAL_DEVICE_IDS=$(seq -s, "$first" "$((first + share - 1))")
  export JAX_LOCAL_DEVICE_IDS
fi

# What the library of a CPU's collectives says of every group of devices would stand between the
# lines of all tasks. The filter ignores signals, for the command prints until it has saved.
trap '' TERM INT
exec 3> >(exec grep --text --line-buffered -v '^\[Gloo\] Rank [0-9]* is connected')
# The command gets signals itself; this script waits for what it makes of them.
trap : TERM INT
"$@" >&3 3>&-
code=$?

# srun's code is the highest of its tasks': a mistake (2) counts for more than a failure, a person's
# Ctrl-C (130), a kill (over 128), and "saved, try again" (75), in this order.
case "$code" in
  0 | 75) exit "$code" ;;
  2) exit 202 ;;
  130) exit 200 ;;
esac
[ "$code" -gt 128 ] || exit 201
exit "$code"
