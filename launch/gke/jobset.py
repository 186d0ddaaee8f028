"""The Kubernetes JobSet of a training, for TPU slices and for nodes with GPUs.

Every process is a pod; the pods of a slice are an indexed Job. If one of them ends for any reason
but a user's mistake, the whole set is started again, and training resumes from its last checkpoint.
"""

import dataclasses
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from attention_jax.discovery import VARIABLE as EXTENSIONS
from attention_jax.errors import UserError

# Names of node types in GKE.
_TPU_NODES = {
    "v4": "tpu-v4-podslice",
    "v5e": "tpu-v5-lite-podslice",
    "v5p": "tpu-v5p-slice",
    "v6e": "tpu-v6e-slice",
}
_GPU_NODES = {
    "t4": "nvidia-tesla-t4",
    "l4": "nvidia-l4",
    "a100-40g": "nvidia-tesla-a100",
    "a100-80g": "nvidia-a100-80gb",
    "h100": "nvidia-h100-80gb",
    "h200": "nvidia-h200-141gb",
}
_TPUS_OF_NODE, _GPUS_OF_NODE = 4, 8  # devices of a node of the usual size
_MOST_OF_NODE = {"t4": 4}
# Where GKE mounts the driver's libraries; images that are not NVIDIA's do not search there.
_DRIVER = "/usr/local/nvidia/lib64"
_COORDINATOR_PORT = 8476
_DISTRIBUTED = "ATTENTION_JAX_DISTRIBUTED"
_COORDINATOR = "ATTENTION_JAX_COORDINATOR"
_NUM_PROCESSES = "ATTENTION_JAX_NUM_PROCESSES"
_PROCESS_ID = "ATTENTION_JAX_PROCESS_ID"
_MEETING = (_DISTRIBUTED, _COORDINATOR, _NUM_PROCESSES, _PROCESS_ID)
_MOUNT = "/runs"
_MISTAKE = 2  # exit code of a user's mistake, which trying again does not mend
_GRACE_SECONDS = 120  # from SIGTERM to SIGKILL: time to finish a step and save
_USER, _ROOT = 1000, 0  # of the image; only root may open the devices of TPUs


@dataclasses.dataclass(frozen=True)
class Request:
    """A training to be run on GKE.

    Attributes:
      name: Name of the JobSet.
      image: Docker image with the repository as its working directory.
      kind: Kind of devices, such as `v5e` or `h100`.
      shape: Chips along each axis of a TPU slice, or the number of GPUs.
      slices: Number of TPU slices.
      per_node: Devices of a node; 0 for the usual number.
      bucket: Cloud Storage bucket to mount for runs; this or `claim` is given.
      claim: Persistent volume claim to mount for runs.
      data: Directory of the volume with files of data sets, if they are not to be downloaded.
      extensions: Directories of the volume with parts of the user's own, separated as in PATH, if
        they are not in the image.
      variables: Further variables of the training's environment.
      service_account: Kubernetes service account that may use the bucket.
      arguments: Arguments of launch.train, without --workdir.
      directory: The run's directory on the volume; called like the JobSet if empty.
      max_restarts: How often the set may be started again.
      spot: Whether to use spot nodes, which may be taken away.
    """

    name: str
    image: str
    kind: str
    shape: tuple[int, ...]
    arguments: Sequence[str]
    directory: str = ""
    slices: int = 1
    per_node: int = 0
    bucket: str | None = None
    claim: str | None = None
    data: str | None = None
    extensions: str | None = None
    variables: Mapping[str, str] = dataclasses.field(default_factory=dict)
    service_account: str | None = None
    max_restarts: int = 100
    spot: bool = False

    def __post_init__(self):
        if not re.fullmatch(r"[a-z]([a-z0-9-]{0,38}[a-z0-9])?", self.name):
            raise UserError(
                "--name: expected up to 40 small letters, digits and hyphens, a letter first, "
                f"found {self.name!r}"
            )
        if bool(self.bucket) == bool(self.claim):
            found = "both" if self.bucket else "neither"
            raise UserError(f"--bucket, --claim: expected one of them, found {found}")
        if self.kind not in _TPU_NODES and self.kind not in _GPU_NODES:
            kinds = ", ".join([*_TPU_NODES, *_GPU_NODES])
            raise UserError(f"--topology: expected one of {kinds}, found {self.kind!r}")
        if self.slices > 1 and not self.is_tpu:
            raise UserError(f"--slices: expected 1 for GPUs, found {self.slices}")
        if self.devices % self.devices_of_node:
            raise UserError(
                f"--per_node: expected a number that divides {self.devices} devices, "
                f"found {self.devices_of_node}"
            )
        for name in self.variables:
            if name in _settings(self) or name in _MEETING:
                raise UserError(f"--env: expected none that the manifest itself sets, found {name}")

    @property
    def is_tpu(self) -> bool:
        """Whether the devices are TPUs."""
        return self.kind in _TPU_NODES

    @property
    def devices(self) -> int:
        """Devices of a slice, or all GPUs."""
        return math.prod(self.shape)

    @property
    def devices_of_node(self) -> int:
        """Devices of one node."""
        usual = _TPUS_OF_NODE if self.is_tpu else _MOST_OF_NODE.get(self.kind, _GPUS_OF_NODE)
        return self.per_node or min(usual, self.devices)

    @property
    def nodes(self) -> int:
        """Nodes of a slice, or all with GPUs."""
        return self.devices // self.devices_of_node


def jobset(request: Request) -> dict[str, Any]:
    """Builds the JobSet manifest, `jobset.x-k8s.io/v1alpha2`."""
    metadata: dict[str, Any] = {"name": request.name}
    if request.is_tpu:  # a slice is a node pool, and has room for one of the set's jobs
        exclusive = "alpha.jobset.sigs.k8s.io/exclusive-topology"
        metadata["annotations"] = {exclusive: "cloud.google.com/gke-nodepool"}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": metadata,
        "spec": {
            "network": {"enableDNSHostnames": True, "subdomain": request.name},
            # A Job that failed by its pods' failure policy, below, failed by a mistake: no restart.
            "failurePolicy": {
                "maxRestarts": request.max_restarts,
                "rules": [
                    {
                        "name": "mistake",
                        "action": "FailJobSet",
                        "onJobFailureReasons": ["PodFailurePolicy"],
                    }
                ],
            },
            "replicatedJobs": [
                {
                    "name": "slice",
                    "replicas": request.slices,
                    "template": {"spec": _job(request)},
                }
            ],
        },
    }


def _job(request: Request) -> dict[str, Any]:
    on_mistake = {"containerName": "train", "operator": "In", "values": [_MISTAKE]}
    return {
        "parallelism": request.nodes,
        "completions": request.nodes,
        "completionMode": "Indexed",
        # One pod cannot come back alone into a running collective: the whole set restarts instead.
        "backoffLimit": 0,
        "podFailurePolicy": {"rules": [{"action": "FailJob", "onExitCodes": on_mistake}]},
        "template": _pod(request),
    }


def _pod(request: Request) -> dict[str, Any]:
    if request.is_tpu:
        selector = {
            "cloud.google.com/gke-tpu-accelerator": _TPU_NODES[request.kind],
            "cloud.google.com/gke-tpu-topology": "x".join(map(str, request.shape)),
        }
    else:
        selector = {"cloud.google.com/gke-accelerator": _GPU_NODES[request.kind]}
    if request.spot:
        selector["cloud.google.com/gke-spot"] = "true"
    spec: dict[str, Any] = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": _GRACE_SECONDS,
        # fsGroup lets the image's user write to the volume.
        "securityContext": {"runAsUser": _ROOT if request.is_tpu else _USER, "fsGroup": _USER},
        "nodeSelector": selector,
        "containers": [_container(request)],
        "volumes": [_volume(request), {"name": "shm", "emptyDir": {"medium": "Memory"}}],
    }
    if request.service_account:
        spec["serviceAccountName"] = request.service_account
    pod: dict[str, Any] = {"spec": spec}
    if request.bucket:
        pod["metadata"] = {"annotations": {"gke-gcsfuse/volumes": "true"}}
    return pod


def _container(request: Request) -> dict[str, Any]:
    resource = "google.com/tpu" if request.is_tpu else "nvidia.com/gpu"
    limits = {resource: request.devices_of_node}
    return {
        "name": "train",
        "image": request.image,
        "command": ["python", "-m", "launch.train"],
        "args": [*request.arguments, f"--workdir={_MOUNT}/{request.directory or request.name}"],
        "env": _environment(request),
        "ports": [{"containerPort": _COORDINATOR_PORT}],
        "resources": {"requests": dict(limits), "limits": limits},
        "volumeMounts": [
            {"name": "runs", "mountPath": _MOUNT},
            # NCCL shares memory there, and containers have 64 MB of it by default.
            {"name": "shm", "mountPath": "/dev/shm"},
        ],
    }


def _environment(request: Request) -> list[dict[str, Any]]:
    values = {**_settings(request), **request.variables}
    environment = [{"name": name, "value": value} for name, value in values.items()]
    return [*environment, *_meeting(request)]


def _settings(request: Request) -> dict[str, str]:
    """Returns the variables that follow from the devices and from what is on the volume."""
    # Named explicitly, so that a process that cannot use its devices fails, instead of training on
    # the CPU.
    values = {"JAX_PLATFORMS": "tpu,cpu" if request.is_tpu else "cuda,cpu"}
    if not request.is_tpu:
        values["LD_LIBRARY_PATH"] = _DRIVER
    if request.data:
        values["ATTENTION_JAX_DATA"] = _mounted(request.data)
    if request.extensions:
        values[EXTENSIONS] = ":".join(map(_mounted, request.extensions.split(":")))
    return values


def _mounted(directory: str) -> str:
    return f"{_MOUNT}/{directory.strip('/')}"


def _meeting(request: Request) -> list[dict[str, Any]]:
    """Returns the variables by which processes meet: GKE itself tells pods with TPUs."""
    if request.nodes * request.slices == 1:
        return []
    if request.is_tpu:
        return [{"name": _DISTRIBUTED, "value": "auto"}]
    first = f"{request.name}-slice-0-0.{request.name}:{_COORDINATOR_PORT}"
    # An indexed Job numbers its pods from 0, and pod 0 has a stable DNS name.
    index = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
    return [
        {"name": _COORDINATOR, "value": first},
        {"name": _NUM_PROCESSES, "value": str(request.nodes)},
        {"name": _PROCESS_ID, "valueFrom": {"fieldRef": {"fieldPath": index}}},
    ]


def _volume(request: Request) -> dict[str, Any]:
    if request.claim:
        return {"name": "runs", "persistentVolumeClaim": {"claimName": request.claim}}
    return {
        "name": "runs",
        "csi": {
            "driver": "gcsfuse.csi.storage.gke.io",
            "volumeAttributes": {
                "bucketName": request.bucket.removeprefix("gs://"),
                "mountOptions": "implicit-dirs",
            },
        },
    }
