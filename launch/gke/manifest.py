r"""Writes the JobSet manifest of a training, for TPU slices or nodes with GPUs of GKE.

usage: python -m launch.gke.manifest --config=FILE[:ARGUMENT] --name=NAME --image=IMAGE
           --topology=KIND:SHAPE (--bucket=BUCKET | --claim=CLAIM) [options]

  --config           a file of configs/, in the image too; --config.FIELD=VALUE likewise. Mistakes
                     are found here, before anything is queued
  --name             of the JobSet, and of the run's directory on the volume
  --image            made by launch/docker/Dockerfile
  --topology         a TPU slice (v4:2x2x2, v5e:4x4, v5p:2x2x2, v6e:4x4), or GPUs (t4, l4, a100-40g,
                     a100-80g, h100, h200, as in h100:16)
  --slices=N         so many TPU slices (1)
  --per_node=N       devices of a node (4 TPUs or T4s, 8 other GPUs, or all if fewer)
  --bucket           a bucket of Cloud Storage that holds the runs, mounted by Cloud Storage FUSE
  --claim            or a persistent volume claim that many nodes may write, such as Filestore's
  --data             a directory of the volume with the files of data sets (ATTENTION_JAX_DATA);
                     otherwise each pod downloads them, at every start
  --extensions       directories of the volume with parts of your own, separated as in PATH, if they
                     are not in the image (ATTENTION_JAX_EXTENSIONS)
  --env=NAME=VALUE   a variable of the training, any number of times; those of this machine are not
                     passed on
  --service_account  of Kubernetes, with access to the bucket
  --max_restarts=N   how often a training that fails or is preempted is started again (100)
  --spot             on spot nodes
  --out              a file for the manifest, instead of the screen

for example:
  python -m launch.gke.manifest --config=configs/bahdanau2015.py:multi30k --name=rnnsearch \
      --image=europe-docker.pkg.dev/PROJECT/REPOSITORY/attention_jax:tpu --topology=v5e:4x4 \
      --slices=2 --bucket=my-runs --service_account=trainer --out=rnnsearch.yaml
  kubectl apply -f rnnsearch.yaml
"""

from attention_jax.commands import cli
from launch.gke import options


def main() -> None:
    """Checks everything, then writes the manifest."""
    from launch.gke import writing

    writing.write([writing.requested()], cli.output_path("out"))


if __name__ == "__main__":
    options.define_flags()
    cli.run(main, __doc__, cli.prepare_experiment)
