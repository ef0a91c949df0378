"""What learned rivals are told: latencies of the placements that they try, while their budget lasts."""

from __future__ import annotations

import numpy as np

from ov_autoplace._base.arrays import FloatArray, IntArray
from ov_autoplace.errors import TrainingError
from ov_autoplace.plan.placement import Placement
from ov_autoplace.policy.features import PolicyGraph
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers.greedy import greedy_assignment
from ov_autoplace.training.environment import Environment
from rivals.rival import RivalOptions

_RANDOM_STARTS = 20


class Trials:
    """Simulated placements of one table, counted against a budget.

    A placement is the device of each of N units (groups that must share a device), ``int32[N]``.

    Attributes:
        graph: What there is to know about the table.
        reference_seconds: Latency of the best single device, or of the solver ``portfolio`` where none runs
            all.
        sampled: Latency of every placement that was tried, in order; ``inf`` = illegal.
    """

    def __init__(self, problem: Problem, options: RivalOptions) -> None:
        self.graph = PolicyGraph.of(problem)
        self.sampled: list[float] = []
        self._options = options
        self._units = problem.units
        self._environment = Environment([problem])
        self.reference_seconds = float(self._environment.best_single[0])
        self._best: IntArray | None = None
        self._best_seconds = np.inf

    @property
    def left(self) -> int:
        """How many placements may still be tried."""
        if self.sampled and self._options.expired:
            return 0
        return self._options.evaluations - len(self.sampled)

    def seconds(self, placements: IntArray) -> FloatArray:
        """Simulate k placements, ``int32[k, N]``; no more than are left.

        Returns:
            Latencies, ``float64[k]``; ``inf`` = illegal.
        """
        latencies: FloatArray = self._environment.latencies([placements])[0]
        fastest = int(np.argmin(latencies))
        if latencies[fastest] < self._best_seconds:
            self._best, self._best_seconds = placements[fastest].copy(), float(latencies[fastest])
        self.sampled += latencies.tolist()
        return latencies

    def random_start(self, random: np.random.Generator) -> tuple[IntArray, float]:
        """A legal placement and its latency: each unit on any allowed device with equal chances.

        Where chance finds nothing legal in twenty trials, it is the solvers' greedy one.

        Raises:
            TrainingError: That is not legal either, and nothing legal was found before.
        """
        allowed = self.graph.allowed
        for _ in range(min(_RANDOM_STARTS, self.left)):
            # The largest of equally distributed numbers is each of them equally often.
            drawn = np.where(allowed, random.random(allowed.shape), -1.0).argmax(axis=1).astype(np.int32)
            latency = float(self.seconds(drawn[None])[0])
            if latency < np.inf:
                return drawn, latency
        if self._best is not None:
            return self._best.copy(), self._best_seconds
        greedy = greedy_assignment(self.graph.problem.table, self._units)
        latency = float(self.seconds(greedy[None])[0])
        if latency == np.inf:
            raise TrainingError("found no legal placement to start from; relax the limits")
        return greedy, latency

    def answer(self) -> Placement:
        """The best placement that was tried.

        Raises:
            TrainingError: None was legal.
        """
        if self._best is None:
            raise TrainingError(
                f"none of {len(self.sampled)} placements was legal; try more, or relax the limits"
            )
        return self.graph.problem.evaluator.answer(self._best)
