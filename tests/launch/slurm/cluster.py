"""A real SLURM of one node, in a directory of its own: nothing of the machine's is used or left.

munged, slurmctld and slurmd run as children with keys, sockets, ports, spools and logs below that
directory. Two partitions: jobs of `urgent` preempt those of `normal`, which are told so and
requeued. What SLURM takes for two GPUs are device files of
no device.
"""

import contextlib
import os
import secrets
import shutil
import socket
import stat
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scontrol")
_PACKAGES = ("slurm-wlm", "munge")
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_CONFIG = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
ReturnToService=2
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmdSpoolDir={folder}/slurmd
StateSaveLocation={folder}/state
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
SlurmUser=root
SlurmdUser=root
SlurmdParameters=config_overrides
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,batch_sched_delay=0
GresTypes=gpu
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 {gpus} State=UNKNOWN
PartitionName=normal Nodes={host} Default=YES PriorityTier=1 PreemptMode=REQUEUE GraceTime=120
PartitionName=urgent Nodes={host} PriorityTier=2 PreemptMode=OFF
"""


class Unavailable(Exception):
    """SLURM cannot be had here; the message says why."""


class Cluster:
    """Commands of a running SLURM."""

    def __init__(self, folder: Path, environment: Mapping[str, str], has_gpus: bool):
        self.folder = folder
        self.environment = dict(environment)
        self.has_gpus = has_gpus

    def __call__(self, *command: str, cwd: Path | None = None) -> str:
        """Runs a command, such as `squeue`, and returns what it prints."""
        done = subprocess.run(
            command, env=self.environment, cwd=cwd, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def job(self, number: str) -> dict[str, str]:
        """Returns what SLURM knows of a job, such as `JobState`, `ExitCode` and `Restarts`."""
        words = self("scontrol", "show", "job", number, "--oneliner").split()
        return dict(word.split("=", 1) for word in words if "=" in word)

    def has_cleaned_up(self) -> bool:
        """Returns whether the node holds nothing of any job: no step, no copy of its script."""
        names = [path.name for path in (self.folder / "slurmd").iterdir()]
        return not any(name.startswith(("job", f"{_host()}_")) for name in names)

    def logs(self) -> str:
        """Returns the ends of the daemons' logs, for messages."""
        return "\n".join(
            f"== {path.name}\n{path.read_text(errors='replace')[-2000:]}"
            for path in sorted(self.folder.glob("*.log"))
        )


@contextlib.contextmanager
def running_cluster(folder: Path) -> Iterator[Cluster]:
    """Starts a cluster, and ends whatever runs in it.

    Raises:
      Unavailable: If that cannot be done here.
    """
    _install()
    host = _host()
    with contextlib.suppress(OSError):
        socket.gethostbyname(host)
    ports = dict(zip(("controller_port", "node_port"), _free_ports(2), strict=True))
    folder.chmod(0o755)
    has_gpus = _made_gpus(folder, host)
    gpus = "Gres=gpu:2" if has_gpus else ""
    config = _CONFIG.format(folder=folder, host=host, gpus=gpus, **ports)
    (folder / "slurm.conf").write_text(config)
    environment = {
        **{name: text for name, text in os.environ.items() if not name.startswith("SLURM_")},
        "SLURM_CONF": str(folder / "slurm.conf"),
        "PATH": f"{os.environ.get('PATH', '')}:{_SYSTEM_PATH}",
    }
    cluster = Cluster(folder, environment, has_gpus)
    children = []
    try:
        _start(cluster, children)
        yield cluster
    finally:
        _stop(cluster, children)


def wait_for(what: Callable[[], bool], seconds: float, explain: Callable[[], str]) -> None:
    """Waits until something is so."""
    limit = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < limit, explain()
        time.sleep(0.2)


def _install() -> None:
    path = f"{os.environ.get('PATH', '')}:{_SYSTEM_PATH}"
    if os.geteuid() != 0:
        raise Unavailable("a SLURM of one's own needs root")
    if all(shutil.which(name, path=path) for name in PROGRAMS):
        return
    if not shutil.which("apt-get"):
        raise Unavailable(f"needs {', '.join(PROGRAMS)}, and there is no apt-get to install them")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "timeout": 300}
    # RUNLEVEL=1 keeps the packages from starting services.
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    for command in (["update"], ["install", "-y", "--no-install-recommends", *_PACKAGES]):
        done = subprocess.run(["apt-get", "-qq", *command], env=environment, **quiet)
    if done.returncode:
        raise Unavailable(f"apt-get could not install {' and '.join(_PACKAGES)}")


def _made_gpus(folder: Path, host: str) -> bool:
    """Makes two GPUs of the node, as far as SLURM looks, where one may make device files."""
    try:
        for number in range(2):
            os.mknod(folder / f"nvidia{number}", stat.S_IFCHR, os.makedev(195, number))
    except OSError:
        return False
    (folder / "gres.conf").write_text(f"NodeName={host} Name=gpu File={folder}/nvidia[0-1]\n")
    return True


def _start(cluster: Cluster, children: list[subprocess.Popen]) -> None:
    folder, environment = cluster.folder, cluster.environment
    for name in ("slurmd", "state"):
        (folder / name).mkdir()
    key = folder / "munge.key"
    key.touch(mode=0o600)
    key.write_bytes(secrets.token_bytes(1024))
    munge = {"key": key, "socket": folder / "munge.socket", "log": folder / "munged.log"}
    munge |= {"pid": folder / "munged.pid", "seed": folder / "munge.seed"}
    options = [f"--{name}{'' if name == 'socket' else '-file'}={at}" for name, at in munge.items()]
    commands = (
        ["munged", "--foreground", "--force", *options],
        ["slurmctld", "-D", "-f", str(folder / "slurm.conf")],
        ["slurmd", "-D", "-f", str(folder / "slurm.conf")],
    )
    for command in commands:
        output = (folder / f"{command[0]}.out.log").open("w")
        with output:
            child = subprocess.Popen(
                command, env=environment, stdout=output, stderr=output, start_new_session=True
            )
        children.append(child)
        if command[0] == "munged":
            wait_for(munge["socket"].exists, 20, cluster.logs)
    try:
        wait_for(lambda: "idle" in _states(cluster), 40, cluster.logs)
    except AssertionError as error:
        raise Unavailable(f"the daemons did not come up: {str(error)[-500:]}") from None


def _states(cluster: Cluster) -> str:
    done = subprocess.run(
        ["sinfo", "--noheader", "--format=%T"],
        env=cluster.environment, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    return done.stdout


def _stop(cluster: Cluster, children: list[subprocess.Popen]) -> None:
    """Ends jobs, then the daemons, each asked first and then killed; only what was started."""
    if len(children) == 3:
        with contextlib.suppress(Exception):
            cluster("scancel", "--state=PENDING")
            cluster("scancel", "--signal=KILL", "--full", "--state=RUNNING")
            cluster("scancel", "--state=RUNNING")
            none = 'test -z "$(squeue --noheader)"'
            wait_for(lambda: not cluster("squeue", "--noheader").strip(), 20, lambda: none)
    for child in reversed(children):
        child.terminate()
        try:
            child.wait(15)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait(15)


def _host() -> str:
    return socket.gethostname().split(".")[0]


def _free_ports(number: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
