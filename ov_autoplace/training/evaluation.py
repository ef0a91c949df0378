"""How good a policy's greedy answers are: gaps to the best placements known, by family."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ov_autoplace._base.arrays import FloatArray, IntArray
from ov_autoplace.policy.features import PolicyGraph
from ov_autoplace.policy.networks.batch import collate
from ov_autoplace.policy.networks.interface import PlacementNetwork
from ov_autoplace.solvers.policy import policy_assignment
from ov_autoplace.training.examples import Example
from ov_autoplace.training.labelled import Labelled

__all__ = ["Evaluation", "greedy", "mean_interval", "scores_of", "seconds_of"]

_RESAMPLES = 2000
_REPORTED_LOSSES = 5


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Gaps of one policy on several problems.

    Attributes:
        gaps: Latency over the best known, minus 1, ``float64[P]``; below 0 where the policy is better.
        families: Family of each problem.
        names: Name of each problem's graph.
    """

    gaps: FloatArray
    families: tuple[str, ...]
    names: tuple[str, ...]

    @classmethod
    def of(cls, seconds: Sequence[float], problems: Sequence[Example | Labelled]) -> Evaluation:
        """Of the seconds that the answer to each problem takes."""
        return cls(
            np.array([s / problem.best_seconds - 1.0 for s, problem in zip(seconds, problems, strict=True)]),
            tuple(problem.task.family for problem in problems),
            tuple(problem.task.name for problem in problems),
        )

    def summary(self) -> dict[str, float]:
        """Mean, geometric mean, median, 95th percentile and largest gap."""
        gaps = self.gaps
        return {
            "mean_gap": float(gaps.mean()),
            "geometric_gap": float(np.expm1(np.log1p(gaps).mean())),
            "median_gap": float(np.median(gaps)),
            "p95_gap": float(np.quantile(gaps, 0.95)),
            "largest_gap": float(gaps.max()),
        }

    def by_family(self) -> dict[str, float]:
        """Mean gap of each family."""
        family = np.array(self.families)
        return {name: float(self.gaps[family == name].mean()) for name in sorted(set(self.families))}

    def report(self) -> dict[str, Any]:
        """What a checkpoint's card says: summary, spread, families and the problems it is worst at."""
        losing = np.argsort(-self.gaps, kind="stable")[:_REPORTED_LOSSES]
        low, high = mean_interval(self.gaps)
        return {
            "problems": len(self.gaps),
            **self.summary(),
            "mean_gap_95_percent_interval": [low, high],
            "by_family": self.by_family(),
            "losing_cases": [{"graph": self.names[i], "gap": float(self.gaps[i])} for i in losing],
        }


def mean_interval(values: FloatArray) -> tuple[float, float]:
    """95 % interval of a mean, by the percentile bootstrap (Efron, 1979)."""
    random = np.random.default_rng(0)
    means = values[random.integers(0, len(values), (_RESAMPLES, len(values)))].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def scores_of(network: PlacementNetwork, graph: PolicyGraph) -> NDArray[np.float32]:
    """A network's scores of each of N units on each device, ``float32[N, D]``; ``-inf`` = forbidden.

    Args:
        network: In evaluation mode.
        graph: N units.
    """
    with torch.no_grad():
        output = network(collate([graph]))
    scores: NDArray[np.float32] = output.logits[output.row_of].numpy()
    return scores


def greedy(network: PlacementNetwork) -> Callable[[PolicyGraph], IntArray]:
    """A network's placement of a graph as the solver ``policy`` reads it from scores, ``int32[N]``.

    Args:
        network: In evaluation mode.
    """

    def answer(graph: PolicyGraph) -> IntArray:
        return policy_assignment(scores_of(network, graph), graph)

    return answer


def seconds_of(answer: Callable[[PolicyGraph], IntArray], problem: Example) -> float:
    """What an answer takes on the true table."""
    return float(problem.true_problem.evaluator.latencies([answer(problem.graph)])[0])
