"""What a JobSet may hold: the fields that manifests of this project use, and no others.

Field names, types and choices follow the API `jobset.x-k8s.io/v1alpha2`, `batch/v1` and `v1`.
"""

import re
from typing import Any

LABEL = r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?"
REASONS = (
    "BackoffLimitExceeded", "DeadlineExceeded", "FailedIndexes", "MaxFailedIndexesExceeded",
    "PodFailurePolicy",
)  # fmt: skip


class Choice(tuple):
    """One of these values."""


class Optional:
    """A field that may be missing."""

    def __init__(self, schema: Any):
        self.schema = schema


TEXTS = {str: str}
QUANTITIES = {"google.com/tpu": Optional(int), "nvidia.com/gpu": Optional(int)}
CONTAINER = {
    "name": re.compile(LABEL),
    "image": str,
    "command": [str],
    "args": [str],
    "env": [
        {
            "name": re.compile("[A-Z_]+"),
            "value": Optional(str),
            "valueFrom": Optional({"fieldRef": {"fieldPath": str}}),
        }
    ],
    "ports": [{"containerPort": int}],
    "resources": {"requests": QUANTITIES, "limits": QUANTITIES},
    "volumeMounts": [{"name": str, "mountPath": re.compile("/.*")}],
}
VOLUME = {
    "name": re.compile(LABEL),
    "emptyDir": Optional({"medium": Choice(["Memory"])}),
    "persistentVolumeClaim": Optional({"claimName": str}),
    "csi": Optional({"driver": str, "volumeAttributes": TEXTS}),
}
POD = {
    "metadata": Optional({"annotations": TEXTS}),
    "spec": {
        "restartPolicy": Choice(["Never"]),  # as podFailurePolicy asks for
        "terminationGracePeriodSeconds": int,
        "securityContext": {"runAsUser": int, "fsGroup": int},
        "serviceAccountName": Optional(str),
        "nodeSelector": TEXTS,
        "containers": [CONTAINER],
        "volumes": [VOLUME],
    },
}
EXIT_CODES = {"containerName": str, "operator": Choice(["In", "NotIn"]), "values": [int]}
JOB = {
    "parallelism": int,
    "completions": int,
    "completionMode": Choice(["Indexed"]),
    "backoffLimit": int,
    "podFailurePolicy": {"rules": [{"action": Choice(["FailJob"]), "onExitCodes": EXIT_CODES}]},
    "template": POD,
}
JOBSET = {
    "apiVersion": Choice(["jobset.x-k8s.io/v1alpha2"]),
    "kind": Choice(["JobSet"]),
    "metadata": {"name": re.compile(LABEL), "annotations": Optional(TEXTS)},
    "spec": {
        "network": {"enableDNSHostnames": bool, "subdomain": re.compile(LABEL)},
        "failurePolicy": {
            "maxRestarts": int,
            "rules": [
                {
                    "name": re.compile("[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"),
                    "action": Choice(["FailJobSet", "RestartJobSet"]),
                    "onJobFailureReasons": [Choice(REASONS)],
                }
            ],
        },
        "replicatedJobs": [{"name": re.compile(LABEL), "replicas": int, "template": {"spec": JOB}}],
    },
}


def problems(value: Any, schema: Any = JOBSET, where: str = "") -> list[str]:
    """Returns a line for everything in a manifest that the schema does not allow."""
    if isinstance(schema, Choice):
        return [] if value in schema else [f"{where}: {value!r} is none of {tuple(schema)}"]
    if isinstance(schema, re.Pattern):
        fits = isinstance(value, str) and schema.fullmatch(value)
        return [] if fits else [f"{where}: {value!r} is not like {schema.pattern}"]
    if isinstance(schema, type):
        return [] if type(value) is schema else [f"{where}: {value!r} is no {schema.__name__}"]
    if isinstance(schema, list):
        if not isinstance(value, list):
            return [f"{where}: {value!r} is no list"]
        return sum((problems(v, schema[0], f"{where}[{i}]") for i, v in enumerate(value)), [])
    if not isinstance(value, dict):
        return [f"{where}: {value!r} is no mapping"]
    if schema is TEXTS:
        return sum((problems(v, str, f"{where}.{name}") for name, v in value.items()), [])
    found = [f"{where}.{name}: not known" for name in value if name not in schema]
    for name, inner in schema.items():
        optional = isinstance(inner, Optional)
        if name in value:
            found += problems(value[name], inner.schema if optional else inner, f"{where}.{name}")
        elif not optional:
            found.append(f"{where}.{name}: missing")
    return found
