"""The optimum of small problems by constraint programming: OR-tools' CP-SAT, from the extra ``oracle``.

What CP-SAT minimises is a relaxation of every objective, so that what it proves is a bound of the true one:

* ``hetero``: op times, one transfer per tensor and receiving *device*, one launch per device that works;
* ``rate``: the same, of the busiest device;
* ``overlap``: a schedule of pieces, one by one in any order. The tensors of a piece leave at its end instead
  of that of its submodel; a launch is paid before the first piece of a lane and behind a transfer alone; and
  nothing is slower beside others.

Placements are found in the order of that relaxation; the true objective judges each, and it is never found
again (a no-good). The search ends when no placement is left whose relaxation is below the best true value, so
what it then returns is optimal up to rounding; graphs of a dozen groups get there, larger ones get a bound.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from ov_autoplace._base.arrays import IntArray, rows_of
from ov_autoplace._base.extras import extra_needed
from ov_autoplace.errors import OptionError
from ov_autoplace.plan.placement import Placement
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers.local import improve
from ov_autoplace.solvers.solver import Solver, SolverOptions
from ov_autoplace.solvers.tasks import hop_seconds, task_graphs

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import CpModel, IntVar, LinearExprT

__all__ = ["oracle"]

_MOST_UNITS = 400
_RESOLUTION = 10**7  # integer steps that the best placement known takes
_PROVEN = 1e-5  # how close to the optimum is called optimal: sums of rounded steps differ by less
_NEAR = 1.1  # placements up to so much slower than the best are searched around
_DETERMINISTIC_SECONDS = 30.0
_WORK = 150_000  # of the local search behind each placement


def oracle(start: Solver) -> Solver:
    """The solver that begins with what ``start`` finds, and searches on with CP-SAT.

    With a deadline, two threads search until it is over. Without one, a single thread does so much work that
    the answer can be repeated.
    """

    def solve(problem: Problem, options: SolverOptions) -> Placement:
        with extra_needed("oracle", "the solver oracle"):
            from ortools.sat.python import cp_model
        if len(problem.units) > _MOST_UNITS:
            raise OptionError(
                f"the solver oracle takes {_MOST_UNITS} units at most, not {len(problem.units)}; "
                "use portfolio"
            )
        # With a deadline, the other would search until it is over.
        known = start(problem, replace(options, deadline=None))
        return _Search(problem, options, known, cp_model).run()

    return solve


class _Search:
    """The program of a problem, and the best placement so far."""

    def __init__(self, problem: Problem, options: SolverOptions, start: Placement, cp_model: Any) -> None:
        self._problem, self._options, self._cp = problem, options, cp_model
        self._best = problem.units.from_groups(start.assignment)
        self._value = float(problem.evaluator.latencies([self._best])[0])
        self._bound = start.lower_bound_seconds or 0.0
        self._scale = _RESOLUTION / self._value if self._value > 0 else 1.0
        self._model: CpModel = cp_model.CpModel()
        self._on = self._placed()
        self._objective: LinearExprT
        if problem.scored.at_once:
            self._objective = self._makespan()
        else:
            busy = self._busy()
            self._objective = self._busiest(busy) if problem.scored.per_request else sum(busy)
        self._model.minimize(self._objective)

    def run(self) -> Placement:
        """Search until the best is proven, or the time is up."""
        evaluator, bound = self._problem.evaluator, self._bound
        left = _DETERMINISTIC_SECONDS if self._options.deadline is None else math.inf
        while bound < self._value * (1 - _PROVEN) and not self._options.expired and left > 0:
            self._model.add(self._objective <= self._steps(self._value * (1 - _PROVEN)))
            self._model.clear_hints()
            for u, lanes in enumerate(self._on):
                for d, is_on in lanes.items():
                    self._model.add_hint(is_on, int(self._best[u] == d))
            solver = self._cp.CpSolver()
            solver.parameters.random_seed = self._options.seed
            if self._options.deadline is None:
                solver.parameters.num_workers = 1
                solver.parameters.max_deterministic_time = left
            else:
                solver.parameters.num_workers = 2
                solver.parameters.max_time_in_seconds = max(0.01, self._options.deadline - time.monotonic())
            status = solver.solve(self._model)
            left -= max(solver.response_proto.deterministic_time, 1e-3)
            if status == self._cp.INFEASIBLE:
                bound = self._value * (1 - _PROVEN)
                break
            bound = max(bound, min(self._value, solver.best_objective_bound / self._scale))
            if status not in (self._cp.OPTIMAL, self._cp.FEASIBLE):
                break
            found = np.array(
                [next(d for d, is_on in lanes.items() if solver.boolean_value(is_on)) for lanes in self._on],
                dtype=np.int32,
            )
            self._judge(found)
        return evaluator.answer(self._best, bound)

    def _judge(self, found: IntArray) -> None:
        """Forbid a placement, and keep it, or one nearby, where that is the best so far."""
        evaluator = self._problem.evaluator
        self._model.add_bool_or([~self._on[u][d] for u, d in enumerate(found.tolist())])
        if not self._problem.units.fits(found) or not np.isfinite(evaluator.latencies([found])[0]):
            return
        value = float(evaluator.latencies([found])[0])
        near = improve(evaluator, found, self._options, work=_WORK) if value < _NEAR * self._value else found
        value = float(evaluator.latencies([near])[0])
        if value < self._value:
            self._best, self._value = near, value

    def _steps(self, seconds: float) -> int:
        """Whole steps of a time, rounded down: sums of them are no more than the sum, and so bounds hold."""
        return math.floor(seconds * self._scale)

    def _placed(self) -> list[dict[int, IntVar]]:
        """For each unit and device that it may be on, whether it is there."""
        units, model = self._problem.units, self._model
        on: list[dict[int, IntVar]] = []
        for u, row in enumerate(np.isfinite(units.op_seconds)):
            on.append({d: model.new_bool_var(f"{u} on {d}") for d in np.flatnonzero(row).tolist()})
            model.add_exactly_one(on[-1].values())
        for device in np.unique(units.device_of).tolist():
            capacity = float(units.memory_capacity[device])
            lanes = np.flatnonzero(units.device_of == device).tolist()
            if capacity < float(units.memory_bytes.sum()):
                # What is held all the time; the judge knows of results that live together.
                held = np.floor(units.memory_bytes).astype(np.int64).tolist()
                terms = [held[u] * on[u][d] for u in range(len(units)) for d in lanes if d in on[u]]
                model.add(sum(terms) <= math.ceil(capacity * (1 + 1e-9)))
        return on

    def _works(self) -> tuple[list[IntVar], IntVar]:
        """Whether each device works, and whether several do."""
        units, model = self._problem.units, self._model
        works = [model.new_bool_var(f"{d} works") for d in range(units.num_devices)]
        costs = np.where(np.isfinite(units.op_seconds), units.op_seconds, np.inf).min(axis=1) > 0
        for u in np.flatnonzero(costs).tolist():
            for d, is_on in self._on[u].items():
                model.add_implication(is_on, works[d])
        several = model.new_bool_var("several work")
        for d, first in enumerate(works):
            for second in works[:d]:
                model.add_bool_or([several, ~first, ~second])
        return works, several

    def _busy(self) -> list[LinearExprT]:
        """Steps that each device works in turns; the first also waits for several to wake up."""
        units, table, model = self._problem.units, self._problem.table, self._model
        works, several = self._works()
        self._several = several
        busy: list[LinearExprT] = [
            self._steps(float(units.launch_seconds[d])) * works[d] for d in range(units.num_devices)
        ]
        for u, lanes in enumerate(self._on):
            for d, is_on in lanes.items():
                busy[d] += self._steps(float(units.op_seconds[u, d])) * is_on
        tensor = rows_of(units.offsets)
        for t, p in enumerate(units.producer.tolist()):
            readers = units.consumers[tensor == t].tolist()
            for a, sends in self._on[p].items():
                for b in range(units.num_devices):
                    takes = [self._on[c][b] for c in readers if b in self._on[c] and c != p]
                    if a == b or not takes:
                        continue
                    moves = model.new_bool_var("")
                    for is_there in takes:
                        model.add_bool_or([moves, ~sends, ~is_there])
                    way = units.transfer_latency[a, b] + (
                        units.transfer_seconds_per_byte[a, b] * units.tensor_bytes[t]
                    )
                    busy[b] += self._steps(float(way)) * moves
        if not self._problem.scored.per_request:
            busy[0] += self._steps(table.mix_seconds) * several
        return busy

    def _busiest(self, busy: list[LinearExprT]) -> IntVar:
        most = self._model.new_int_var(0, 2 * _RESOLUTION, "busiest")
        factor = math.floor(1000 * self._problem.table.corun_factor)
        for steps in busy:
            self._model.add(most >= steps)
            self._model.add(1000 * most >= factor * steps - 999).only_enforce_if(self._several)
        return most

    def _makespan(self) -> IntVar:
        """When the last piece ends in a schedule of pieces."""
        problem, model, table = self._problem, self._model, self._problem.table
        pieces = next(task_graphs(problem))
        lanes_of = [self._on[int(pieces.units[own][0])] for own in pieces.together.tolist()]
        _, several = self._works()
        end_of_all = model.new_int_var(0, 2 * _RESOLUTION, "makespan")
        start: list[IntVar] = []
        end: list[LinearExprT] = []
        on_lane: list[list[Any]] = [[] for _ in range(table.num_devices)]
        for piece, lanes in enumerate(lanes_of):
            start.append(model.new_int_var(0, 2 * _RESOLUTION, f"start {piece}"))
            length = {d: self._steps(float(pieces.seconds[piece, d])) for d in lanes}
            end.append(start[piece] + sum(steps * lanes[d] for d, steps in length.items()))
            for d, steps in length.items():
                interval = model.new_optional_fixed_size_interval_var(start[piece], steps, lanes[d], "")
                on_lane[d].append(interval)
                launch = self._steps(float(table.launch_seconds[d]))
                begins = model.add(start[piece] >= launch + self._steps(table.mix_seconds) * several)
                begins.only_enforce_if(lanes[d])
            model.add(end_of_all >= end[piece])
            for p, size in pieces.producers[piece]:
                model.add(start[piece] >= end[p])
                hop = hop_seconds(problem, size)
                for (a, sends), (b, takes) in product(lanes_of[p].items(), lanes.items()):
                    later = model.add(start[piece] >= end[p] + self._steps(float(hop[a, b])))
                    later.only_enforce_if([sends, takes])
        for intervals in on_lane:
            model.add_no_overlap(intervals)
        return end_of_all
