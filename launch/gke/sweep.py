r"""Writes the JobSet manifests of a sweep's runs, one a run, for GKE.

usage: python -m launch.gke.sweep --workdir=DIRECTORY --name=NAME --image=IMAGE
           --topology=KIND:SHAPE (--bucket=BUCKET | --claim=CLAIM) [options]

  --workdir  a sweep that launch.sweep has made here, with --list at least
  --run=N,N  these numbers of its list (default: all that have no record)
  --name     of the sweep's directory on the volume; run N is the JobSet NAME-N
  all others as for launch.gke.manifest

for example:
  python -m launch.sweep --config=configs/bahdanau2015.py:multi30k --workdir=runs/rates \
      --grid=optimizer.learning_rate=3e-4,1e-3 --seeds=3 --list
  python -m launch.gke.sweep --workdir=runs/rates --name=rates --image=IMAGE --topology=l4:1 \
      --bucket=my-runs --service_account=trainer --out=rates.yaml
  kubectl apply -f rates.yaml
  gcloud storage rsync --recursive gs://my-runs/rates runs/rates    # when they are finished
  python -m launch.sweep --workdir=runs/rates
"""

from absl import flags

from attention_jax.commands import cli
from launch.gke import options


def main() -> None:
    """Checks everything, then writes the manifests."""
    from launch.gke import writing

    writing.write(writing.requested_of_sweep(), cli.output_path("out"))


if __name__ == "__main__":
    options.define_flags()
    flags.DEFINE_string("workdir", None, "The sweep.")
    flags.DEFINE_list("run", [], "Numbers of runs.")
    cli.run(main, __doc__)
