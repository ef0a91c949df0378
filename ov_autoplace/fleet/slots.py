"""A place on a node and the process in it, which is an actor of Ray's.

The place is a whole computer, and its actor has the name of that computer: Ray lets a cluster have one actor
of a name, so two drivers, or two containers on one computer, do not measure at once. The actor also holds the
computer's own lock, for drivers of other clusters.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from ov_autoplace.fleet.connection import NAMESPACE, require_ray
from ov_autoplace.fleet.runner import Runner
from ov_autoplace.fleet.units import Place, Unit

__all__ = ["ENDED", "Slot", "Work", "reason_of"]

ENDED = "its node or process ended"
_ENDED = (
    "ActorDiedError",
    "ActorUnavailableError",
    "ActorUnschedulableError",
    "NodeDiedError",
    "TaskUnschedulableError",
    "WorkerCrashedError",
)


@dataclass(eq=False)
class Work:
    """A unit on its way.

    Attributes:
        unit: What to do.
        tries: How often it was begun.
        shunned: Keys of places that failed it.
        faults: What went wrong, a sentence each.
        lost: The last thing that went wrong was a node or process that ended: it may be started again.
        waits_since: Since when no place could take it.
    """

    unit: Unit
    tries: int = 0
    shunned: set[str] = field(default_factory=set)
    faults: list[str] = field(default_factory=list)
    lost: bool = False
    waits_since: float = 0.0


@dataclass(eq=False)
class Slot:
    """A place with its process.

    Attributes:
        place: Where.
        actor: The process, where there is one.
        ref: What it does at the moment.
        work: For which unit.
        is_ready: The process has started and holds the lock.
        since: When it began to start, or then to work; of ``time.monotonic``.
        rests_until: When it may be tried again.
        is_gone: The cluster has it no more.
    """

    place: Place
    actor: Any = None
    ref: Any = None
    work: Work | None = None
    is_ready: bool = False
    since: float = 0.0
    rests_until: float = 0.0
    is_gone: bool = False

    def begin(self, work: Work) -> bool:
        """Have the process do a unit; ``False`` where another driver of the cluster measures there."""
        self.work, self.since = work, time.monotonic()
        if self.actor is not None:
            self.start()
            return True
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        place = self.place
        options: dict[str, Any] = {
            "num_cpus": 0,
            "resources": dict(place.resources),
            "scheduling_strategy": NodeAffinitySchedulingStrategy(place.node_id, soft=False),
            "max_restarts": 0,
            "max_task_retries": 0,
            "name": f"measures on {place.host}",
            "namespace": NAMESPACE,
        }
        try:
            self.actor = require_ray().remote(Runner).options(**options).remote()
        except ValueError:  # the name is taken
            return False
        self.ref = self.actor.hold.remote(place.host)
        return True

    def start(self) -> None:
        """The process is there and holds the lock: it begins."""
        assert self.work is not None
        unit = self.work.unit
        self.work.tries += 1
        self.is_ready, self.since = True, time.monotonic()
        # Nested, so that the references arrive, and what they stand for only where it is asked for.
        self.ref = self.actor.run.remote(unit.function, unit.request, unit.data)

    def release(self) -> None:
        """End the process, so that others may use the place."""
        if self.actor is not None:
            require_ray().kill(self.actor, no_restart=True)
        self.actor = self.ref = self.work = None
        self.is_ready = False


def reason_of(cause: Exception) -> str:
    """One line of what Ray says in many."""
    name = type(cause).__name__
    if name in _ENDED:
        return ENDED
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    return f"failed with {lines[-1] if lines else name}"[:300]
