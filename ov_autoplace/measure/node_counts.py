"""What the nodes of a compiled model take, from the plugin's own counters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ov_autoplace._base.arrays import FloatArray
from ov_autoplace.measure.model_file import reported_failure

if TYPE_CHECKING:
    from ov_autoplace.measure.isolation.interface import Executable, NodeTime

__all__ = ["NodeCount", "count_nodes"]

_COUNT_WARMUP = 2


@dataclass(frozen=True, eq=False)
class NodeCount:
    """What the nodes of a compiled model took.

    Attributes:
        nodes: All n of them.
        seconds: Their means over the inferences, ``float64[n]``.
        latencies: Of the inferences, ``float64[runs]`` in seconds.
    """

    nodes: Sequence[NodeTime]
    seconds: FloatArray
    latencies: FloatArray

    @property
    def disturbance(self) -> float:
        """Mean over median latency, for what made a few inferences long is in the nodes' means."""
        return float(np.mean(self.latencies) / np.median(self.latencies))


def count_nodes(executable: Executable, seconds: float, fewest: int, most: int) -> NodeCount:
    """Run a model that was compiled with ``count_nodes`` and has not been run yet.

    Args:
        executable: The model.
        seconds: To spend, as far as the numbers of inferences allow.
        fewest: Inferences at least.
        most: Inferences at most.

    Raises:
        ProfilingError: An inference fails.
    """
    with reported_failure("the model fails when it is run"):
        return _count_nodes(executable, seconds, fewest, most)


def _count_nodes(executable: Executable, seconds: float, fewest: int, most: int) -> NodeCount:
    # On one thread, OpenVINO loses what synchronous requests throw.
    once = float(executable.run(_COUNT_WARMUP, warmup=0, asynchronous=True).min())
    # A node's time is its mean over all inferences, the slow first ones included, in whole microseconds.
    # The difference of two such sums leaves the slow ones out.
    before = np.array([node.seconds for node in executable.node_times()])
    runs = int(np.clip(seconds / once, fewest, most))
    latencies = np.asarray(executable.run(runs, warmup=0))
    nodes = executable.node_times()
    after = np.array([node.seconds for node in nodes])
    spent = np.maximum(((_COUNT_WARMUP + runs) * after - _COUNT_WARMUP * before) / runs, 0.0)
    return NodeCount(nodes, spent, latencies)
