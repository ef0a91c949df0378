"""Where policies are rewarded: many cost tables at once, each behind the C++ simulator.

A policy decides per unit (groups that must share a device). What it may not do is *masked*: such a placement
has an infinite latency and takes no part in an update, instead of being paid for with some huge number that
would drown what the legal placements say.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ov_autoplace._base.arrays import BoolArray, FloatArray, IntArray, frozen_array
from ov_autoplace.cost.table import CostTable
from ov_autoplace.errors import TrainingError
from ov_autoplace.placement.simulator import simulate_batch
from ov_autoplace.policy.features import PolicyGraph
from ov_autoplace.problem.constraints import Constraints
from ov_autoplace.problem.evaluator import Evaluator
from ov_autoplace.problem.units import UnitGraph
from ov_autoplace.solvers.auto import solve_auto
from ov_autoplace.solvers.solver import SolverOptions

__all__ = ["Environment"]

# Nodes that HETERO's cutting of circles may visit. In the worst case (a ladder with all rungs on the other
# device) 50 million take two seconds; with random placements of a network they take milliseconds.
_MOST_WORK = 50_000_000

Actions = NDArray[np.integer[Any]]


class Environment:
    """B cost tables, for each of which a policy chooses k placements at a time.

    Attributes:
        tables: The B tables.
        graphs: What the policy reads of each.
        best_single: What a reward of 0 stands for, in seconds, ``float64[B]``: the fastest single device that
            may run everything; where there is none, what the ``auto`` solver finds.
        reference: Which of the two that is, for each table: a device name, or ``"auto"``.
    """

    def __init__(
        self, tables: Sequence[CostTable], graphs: Sequence[PolicyGraph], most_work: int = _MOST_WORK
    ) -> None:
        """Take B tables and the graphs made from them; pins and memory limits are those of the graphs.

        Args:
            tables: The tables.
            graphs: ``policy_graph(table)`` of each.
            most_work: Nodes that the simulator may visit to cut one placement; what takes more is masked.

        Raises:
            TrainingError: A graph was not made from its table.
            PlacementError: A table has no legal placement.
        """
        if len(tables) != len(graphs):
            raise TrainingError(f"{len(tables)} tables need as many graphs, not {len(graphs)}")
        self.tables = tuple(tables)
        self.graphs = tuple(graphs)
        self._most_work = most_work
        constraints = [_constraints(b, table, graphs[b]) for b, table in enumerate(tables)]
        self._evaluators = [
            Evaluator(t, UnitGraph.of(t, c)) for t, c in zip(tables, constraints, strict=True)
        ]
        references = [_reference(e, c) for e, c in zip(self._evaluators, constraints, strict=True)]
        self.reference = tuple(name for name, _ in references)
        self.best_single = frozen_array([seconds for _, seconds in references], np.float64)

    def __len__(self) -> int:
        return len(self.tables)

    def split(self, actions: Actions) -> list[Actions]:
        """Cut the actions of a whole batch, ``int[k, N]``, into those of each graph, ``int[k, N_b]``."""
        ends = np.cumsum([len(evaluator.units) for evaluator in self._evaluators])
        if actions.ndim != 2 or actions.shape[1] != ends[-1]:
            raise TrainingError(f"actions must be int[k, {ends[-1]}], not {list(actions.shape)}")
        return np.split(actions, ends[:-1], axis=1)

    def latencies(self, actions: Sequence[Actions]) -> FloatArray:
        """Simulate k placements of every graph on all cores.

        Args:
            actions: Device of every unit: B arrays ``int[k, N_b]``.

        Returns:
            Seconds, ``float64[B, k]``; ``inf`` = masked: a unit on a device that may not run it, more memory
            than a device has, a cut through what must stay together, or so many subgraphs waiting for each
            other in a circle that HETERO would take seconds to sort them out.
        """
        rows = [self._latencies_of(e, a) for e, a in zip(self._evaluators, actions, strict=True)]
        return np.stack(rows)

    def rewards(self, latencies: FloatArray) -> FloatArray:
        """``-log(latency / best single device)`` of latencies ``float64[B, k]``; ``-inf`` = masked."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(-np.log(latencies / self.best_single[:, None]))

    def assignment(self, graph: int, actions: Actions) -> IntArray:
        """Device of every group of a table, ``int32[G]``, from that of every unit, ``int[N_b]``."""
        return np.ascontiguousarray(actions[self._evaluators[graph].units.unit_of], dtype=np.int32)

    def _latencies_of(self, evaluator: Evaluator, actions: Actions) -> FloatArray:
        devices = np.ascontiguousarray(actions, dtype=np.int32)
        legal = _is_legal(evaluator, devices, self._most_work)
        latencies = np.full(len(devices), np.inf)
        if legal.any():
            latencies[legal] = simulate_batch(evaluator.table, devices[legal][:, evaluator.units.unit_of])
        return latencies


def _constraints(number: int, table: CostTable, graph: PolicyGraph) -> Constraints:
    """The constraints that a graph was made under."""
    if graph.unit_of.shape != (len(table),) or graph.num_devices != table.num_devices:
        raise TrainingError(f"graph {number} of the environment was not made from table {number}")
    allowed = graph.allowed[graph.unit_of]
    if (allowed & ~table.supported).any():
        raise TrainingError(f"graph {number} allows what table {number} does not support")
    return Constraints(allowed, graph.memory_capacity, graph.unit_of)


def _is_legal(evaluator: Evaluator, devices: IntArray, most_work: int) -> BoolArray:
    """Which of k placements ``int32[k, N]`` break no constraint and can be simulated in a moment or two."""
    units = evaluator.units
    runs = np.isfinite(units.op_seconds[np.arange(len(units)), devices])
    legal: BoolArray = np.asarray(runs.all(axis=1))
    if units.has_memory_limits:
        legal &= np.array([units.fits(device) for device in devices], dtype=np.bool_)
    if evaluator.nodes * len(units) > most_work:
        for i in np.flatnonzero(legal):
            legal[i] = evaluator.work(devices[i]) <= most_work
    return legal


def _reference(evaluator: Evaluator, constraints: Constraints) -> tuple[str, float]:
    """The placement to compare with, by name, and its seconds."""
    singles = evaluator.singles()
    if singles:
        seconds = evaluator.latencies(list(singles.values()))
        fastest = int(np.argmin(seconds))
        return evaluator.table.devices[list(singles)[fastest]], float(seconds[fastest])
    answer = solve_auto(evaluator.table, constraints, SolverOptions(evaluator.objective))
    return "auto", float(simulate_batch(evaluator.table, answer.assignment[None])[0])
