"""Performance models for what cannot be run here: many devices, long trainings, failures.

Times are in seconds, sizes in bytes, rates per second.
"""

import math


def step_seconds(flops: float, devices: int, peak: float, utilisation: float) -> float:
    """Returns the time that a step computes: flops / (n peak u)."""
    return flops / (devices * peak * utilisation)


def all_reduce_seconds(size: float, devices: int, bandwidth: float) -> float:
    """Time of a ring all-reduce: 2 (n - 1) / n size / bandwidth.

    Args:
      size: Bytes of the array, gradients for example.
      devices: Members of the ring.
      bandwidth: What a device sends, and receives at the same time (1/s).

    Source:
      Patarasuk and Yuan 2009, Bandwidth Optimal All-reduce Algorithms for Clusters of Workstations.
    """
    return 2 * (devices - 1) / devices * size / bandwidth


def data_parallel_efficiency(compute: float, communication: float, overlap: float = 0.0) -> float:
    """Returns the share of a step in which devices compute.

      efficiency = t_compute / (t_compute + (1 - overlap) t_communication)

    Args:
      compute: Time of a step without communication.
      communication: Time of its communication.
      overlap: Share of the communication that is hidden behind computing.
    """
    return compute / (compute + (1 - overlap) * communication)


def example_bytes(source_length: int, target_length: int) -> int:
    """Returns what one example takes in a batch: int32 ids and a mask a token, and its index."""
    return 5 * (source_length + target_length) + 4


def input_rate(batch: int, seconds: float, hosts: int) -> float:
    """Returns the examples that each host has to prepare in a second."""
    return batch / seconds / hosts


def checkpoint_bytes(parameters: int, *, moments: int = 2, average: bool = False) -> int:
    """Returns the size of a checkpoint: 4 P (1 + moments + average).

    Args:
      parameters: Numbers of the model, float32.
      moments: Copies of their size that the optimiser keeps: 2 for Adam.
      average: Whether a moving average is kept.
    """
    return 4 * parameters * (1 + moments + average)


def mean_time_between_failures(of_device: float, devices: int) -> float:
    """Mean time between failures of a job that any device ends: M / n, failures independent."""
    return of_device / devices


def young_interval(save: float, failures: float) -> float:
    """Optimal checkpoint interval, first order: sqrt(2 C M).

    Args:
      save: Time that training stands still for a checkpoint.
      failures: Mean time between failures of the job.

    Source:
      Young 1974, A First Order Approximation to the Optimum Checkpoint Interval.
    """
    return math.sqrt(2 * save * failures)


def daly_interval(save: float, failures: float) -> float:
    """Optimal checkpoint interval to higher order, for failures that are not rare.

      sqrt(2 C M) (1 + sqrt(C / 2M) / 3 + C / 18M) - C  where C < 2M, else M

    Source:
      Daly 2006, A Higher Order Estimate of the Optimum Checkpoint Interval for Restart Dumps.
    """
    if save >= 2 * failures:
        return failures
    ratio = save / (2 * failures)
    return young_interval(save, failures) * (1 + math.sqrt(ratio) / 3 + ratio / 9) - save


def goodput(interval: float, save: float, restart: float, failures: float) -> float:
    """Goodput: the expected share of time that becomes progress.

      goodput = interval / (M exp(R / M) (exp((interval + C) / M) - 1))

    for failures at random, at any time, also while saving and while starting again.

    Args:
      interval: Time computed between two checkpoints.
      save: C, time that training stands still for a checkpoint.
      restart: R, from a failure to the first step after it: noticing, waiting for devices,
        restoring, compiling.
      failures: M, mean time between failures of the job.

    Source:
      Daly 2006, A Higher Order Estimate of the Optimum Checkpoint Interval for Restart Dumps.
    """
    attempts = math.expm1((interval + save) / failures)
    return interval / (failures * math.exp(restart / failures) * attempts)
