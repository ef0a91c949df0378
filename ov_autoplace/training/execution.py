"""Who does the work of training: units, each of which depends on its request alone, and who computes them.

A *job* is what all units of some work have in common. It makes workers, in this process or in others; any of
them gives the same answer to the same request. What is made of the answers (sums of gradients, means) is made
of them in the order of the requests, so it does not matter who computed what, nor when.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Executor", "Executors", "Job", "Weights", "Worker", "in_this_process", "unit_seed"]

Weights = NDArray[np.float32]
"""All parameters of a network, one after the other."""


class Worker(Protocol):
    """Computes units, one at a time."""

    def run(self, kind: str, request: Any, weights: Weights | None) -> Any:
        """The answer to a request, which depends on the three and on the job alone.

        Args:
            kind: Of the unit.
            request: What to do: plain values and arrays, as the answer is.
            weights: Of the network, where the kind needs them.
        """


class Job(Protocol):
    """What units have in common; it can be pickled."""

    def worker(self, is_alone: bool) -> Worker:
        """Somebody who computes them.

        Args:
            is_alone: There is no other on this computer, so what it makes can be kept.
        """


class Executor(Protocol):
    """Has units computed."""

    def run(
        self,
        kind: str,
        requests: Sequence[Any],
        weights: Weights | None = None,
        finished: Callable[[int, Any], None] | None = None,
    ) -> list[Any]:
        """Answers in the order of the requests.

        Args:
            kind: Of all these units.
            requests: One for each unit.
            weights: As :meth:`Worker.run` takes them.
            finished: Called with the number of a unit and its answer as soon as it is there.
        """


Executors = Callable[[Job], AbstractContextManager[Executor]]
"""Makes executors, each for the time of one job."""


class _InThisProcess:
    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def run(
        self,
        kind: str,
        requests: Sequence[Any],
        weights: Weights | None = None,
        finished: Callable[[int, Any], None] | None = None,
    ) -> list[Any]:
        answers = []
        for i, request in enumerate(requests):
            answers.append(self._worker.run(kind, request, weights))
            if finished is not None:
                finished(i, answers[-1])
        return answers


@contextmanager
def in_this_process(job: Job) -> Iterator[Executor]:
    """One unit after the other, by this process."""
    yield _InThisProcess(job.worker(is_alone=True))


def unit_seed(*numbers: int) -> int:
    """Seed of what is random in one unit, such as of the run's seed, the step and the number of the unit."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0])
