"""Pretraining on a cluster: its units of work go to one process for each processor that nodes offer.

Which process computes a unit makes no difference to its answer, as long as all compute alike: what rounding
depends on is asked of every process that answers, and a warning names two that differ.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np

from ov_autoplace.devices.conditions import processor_name
from ov_autoplace.errors import FleetError, TrainingError
from ov_autoplace.fleet.connection import connected, require_ray
from ov_autoplace.fleet.members import Fleet
from ov_autoplace.fleet.units import Outcome, Unit
from ov_autoplace.fleet.workers import Workers
from ov_autoplace.training.execution import Executor, Executors, Job, Weights, Worker

__all__ = ["run_unit", "workers_at"]

_FUNCTION = f"{__name__}:run_unit"

_log = logging.getLogger("ov_autoplace")
_held: dict[str, Worker] = {}  # in a process of a node: the worker of the job that it has


@contextmanager
def workers_at(address: str, limit_seconds: float, most: int | None = None) -> Iterator[Executors]:
    """Executors for jobs of training whose units run on the nodes of a cluster.

    Nodes may join, leave and die meanwhile: units that were lost with one go to another, and while there is
    none they wait as long as a unit may take.

    Args:
        address: Of the cluster, see :func:`~ov_autoplace.fleet.connection.connected`.
        limit_seconds: How long one unit may run; then its process is ended and another one tries.
        most: Processors to use; ``None`` = all that nodes offer.

    Raises:
        OptionError: Ray is not installed.
        FleetError: No cluster answers there, or none of its nodes can compute.
    """
    with connected(address):
        fleet = Fleet()
        if not fleet.processor_places(most):
            reasons = "; ".join(
                f"{m.machine} {m.problem}" if m.problem else f"{m.machine} offers no processor"
                for m in fleet.members()[:3]
            )
            raise FleetError(f"no node of the cluster at {address} can compute: {reasons or 'it has none'}")
        with Workers(
            lambda: fleet.processor_places(most),
            limit_seconds=limit_seconds,
            patience_seconds=limit_seconds,
        ) as workers:
            computing = _Computing()

            def executor(job: Job) -> AbstractContextManager[Executor]:
                return nullcontext(_OnNodes(workers, job, computing))

            yield executor


class _OnNodes:
    """Hands the units of one job to workers."""

    def __init__(self, workers: Workers, job: Job, computing: _Computing) -> None:
        self._workers = workers
        self._computing = computing
        self._put = require_ray().put
        self._job = self._put(job)  # travels once to each node, which shares its arrays among processes
        self._weights: tuple[Weights | None, Any] = (None, None)

    def run(
        self,
        kind: str,
        requests: Sequence[Any],
        weights: Weights | None = None,
        finished: Callable[[int, Any], None] | None = None,
    ) -> list[Any]:
        data = (self._job, *self._sent(weights))
        units = [Unit(str(i), _FUNCTION, (kind, request), data) for i, request in enumerate(requests)]
        kept = None if finished is None else _Finished(finished)
        outcomes = list(self._workers.run(units, kept).values())
        for outcome in outcomes:
            self._check(kind, outcome)
        return [outcome.answer["answer"] for outcome in outcomes]

    def _sent(self, weights: Weights | None) -> tuple[Any, ...]:
        """A reference of weights, which the nodes may have already."""
        if weights is None:
            return ()
        known, reference = self._weights
        if known is None or not np.array_equal(known, weights):
            reference = self._put(weights)
            self._weights = weights, reference
        return (reference,)

    def _check(self, kind: str, outcome: Outcome) -> None:
        if outcome.user_error:
            raise TrainingError(outcome.failure)
        if outcome.failure:
            raise FleetError(
                f"no worker could compute a unit ({kind}): {outcome.failure}; with --resume, training goes "
                "on from the state that was saved last"
            )
        for fault in outcome.faults:
            _log.warning("%s; another worker computed the unit (%s)", fault, kind)
        self._computing.note(outcome.machine, outcome.answer["computes"])


class _Computing:
    """What every machine computes with, so far."""

    def __init__(self) -> None:
        self._first = ("this process", _computes())
        self._said = {self._first[1]}

    def note(self, machine: str, computes: str) -> None:
        """Warn of the first machine that computes with something else."""
        if computes in self._said:
            return
        self._said.add(computes)
        _log.warning(
            "%s computes with %s, %s with %s: sums may round differently, so that the checkpoint depends on "
            "which of them computed what; for one that does not, use machines that are alike",
            machine,
            computes,
            *self._first,
        )


class _Finished:
    """Takes each answer as soon as it is there; finds none, as none is kept under the name of a unit."""

    def __init__(self, finished: Callable[[int, Any], None]) -> None:
        self._finished = finished

    def get(self, name: str) -> dict[str, Any] | None:
        return None

    def put(self, name: str, value: Mapping[str, Any]) -> None:
        self._finished(int(name), value["answer"]["answer"])


def run_unit(request: tuple[str, Any], data: tuple[Any, ...]) -> dict[str, Any]:
    """Compute a unit, in a process of a node.

    Args:
        request: Kind of the unit, and what to do.
        data: References of the job, and of weights where the kind needs them.

    Returns:
        ``answer``, and what this process computes with.
    """
    get = require_ray().get
    job, *weights = data
    if job.hex() not in _held:
        _held.clear()
        _held[job.hex()] = get(job).worker(is_alone=False)
    answer = _held[job.hex()].run(*request, get(weights[0]) if weights else None)
    return {"answer": answer, "computes": _computes()}


def _computes() -> str:
    """What the rounding of a sum depends on."""
    import torch

    instructions = torch.backends.cpu.get_cpu_capability()
    return f"{processor_name()} ({instructions}), torch {torch.__version__}, NumPy {np.__version__}"
