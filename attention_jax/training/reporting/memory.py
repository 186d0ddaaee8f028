"""Memory in use: of the devices where their allocator keeps count, else of this process."""

import resource
import sys
from collections.abc import Iterable, Mapping
from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Device(Protocol):
    """The part of a `jax.Device` that is used here."""

    def memory_stats(self) -> Mapping[str, Any] | None:
        """Returns the allocator's counts, or None where it keeps none."""
        ...


def memory_in_use(devices: Iterable[Device]) -> dict[str, float]:
    """Returns bytes in use, current and peak, as metrics.

    Args:
      devices: Those of this process. Asking them synchronises nothing.

    Returns:
      `memory/device` and `memory/device_peak` of the fullest device; where devices keep no count,
      as CPUs do not, `memory/host` and `memory/host_peak` of the process.
    """
    accounts = [account for device in devices if (account := device.memory_stats())]
    if not accounts:
        return {"memory/host": resident_bytes(), "memory/host_peak": peak_resident_bytes()}
    now = max(account.get("bytes_in_use", 0) for account in accounts)
    peak = max(account.get("peak_bytes_in_use", 0) for account in accounts)
    return {"memory/device": float(now), "memory/device_peak": float(peak)}


def resident_bytes() -> float:
    """Returns the resident set of this process, or NaN where the system does not say."""
    try:
        return _status("VmRSS")
    except (OSError, KeyError):
        return float("nan")


def peak_resident_bytes() -> float:
    """Returns the largest resident set of this process so far, or since it was last reset."""
    try:
        return _status("VmHWM")
    except (OSError, KeyError):
        # ru_maxrss is in bytes on macOS and in kibibytes elsewhere.
        unit = 1 if sys.platform == "darwin" else 1024
        return float(unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def _status(field: str) -> float:
    with open("/proc/self/status") as file:
        # Lines such as `VmRSS:     12345 kB`, where kB means 1024 bytes.
        entries = dict(line.split(":", 1) for line in file if ":" in line)
    return 1024.0 * int(entries[field].split()[0])
