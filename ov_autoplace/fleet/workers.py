"""Handing out units of work to places on the nodes, so that faults of nodes cost time and nothing else.

A *unit* is a function of this package with what to do; a *place* takes one unit at a time. A unit whose node
dies, whose process ends, that takes longer than the limit, or that fails through the machine's fault, goes to
another place; places that come and go meanwhile are seen. What no place could do is named with the reason.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ov_autoplace.fleet.connection import require_ray
from ov_autoplace.fleet.kept import KeptAnswers
from ov_autoplace.fleet.slots import ENDED, Slot, Work, reason_of
from ov_autoplace.fleet.units import Outcome, Place, Unit

__all__ = ["Workers"]

_STEP = 0.2  # seconds between two looks at limits
_LOOK = 2.0  # seconds between two looks at which nodes there are
_REST = 2.0  # seconds before a computer is asked again on which somebody else measures
_START_SECONDS = 90.0  # for a process to start on a node that is alive
_SLOW, _SLOW_SECONDS = 3.0, 5.0  # times the median, and at least so long: then a second place tries, too
_TRIES = 3
_OF_A_MACHINE = ("DeviceError", "OutputError")  # errors that another machine need not have


class Workers:
    """Places with their processes, which are there while units run.

    Args:
        places: Where units run; asked again every other second while some do.
        limit_seconds: How long one unit may run; then its process is ended and another place tries.
        patience_seconds: How long a unit waits for a place that fits it, while nodes start again or join.
    """

    def __init__(
        self,
        places: Callable[[], Sequence[Place]],
        *,
        limit_seconds: float,
        patience_seconds: float = 30.0,
    ) -> None:
        self._ray = require_ray()
        self._places = places
        self._limit = limit_seconds
        self._patience = patience_seconds
        self._slots: dict[str, Slot] = {}
        self._looked = 0.0
        self._begin_run((), None, None)

    def run(
        self,
        units: Sequence[Unit],
        kept: KeptAnswers | None = None,
        progress: Callable[[int, int, str], None] | None = None,
    ) -> dict[str, Outcome]:
        """Run units wherever there is a place for them.

        Args:
            units: What to do; those that come first are begun first.
            kept: Where answers are kept, and looked up first.
            progress: Called with (units done, units, what happens).

        Returns:
            Outcome by name, in the order of ``units`` whatever the places.

        Raises:
            OutputError: An answer cannot be kept.
        """
        self._begin_run(units, kept, progress)
        for unit in units:
            found = kept.get(unit.name) if kept is not None else None
            if found is None:
                self._pending.append(Work(unit, waits_since=time.monotonic()))
            else:
                self._note_use(unit, found["machine"])
                self._outcomes[unit.name] = Outcome(
                    unit.name,
                    found["answer"],
                    found["machine"],
                    tries=found["tries"],
                    seconds=found["seconds"],
                    notes=tuple(found["notes"]),
                )
        try:
            while len(self._outcomes) < len(units):
                self._look()
                self._hand_out()
                self._collect()
                self._end_late_ones()
        finally:
            for slot in self._slots.values():
                slot.release()
        return {unit.name: self._outcomes[unit.name] for unit in units}

    def _begin_run(
        self,
        units: Sequence[Unit],
        kept: KeptAnswers | None,
        progress: Callable[[int, int, str], None] | None,
    ) -> None:
        self._kept = kept
        self._progress = progress
        self._total = len(units)
        self._outcomes: dict[str, Outcome] = {}
        self._pending: list[Work] = []
        self._used: dict[str, set[str]] = {}  # machines by series
        self._seconds: list[float] = []

    # Places.

    def _look(self) -> None:
        """See which places came and went."""
        now = time.monotonic()
        if self._slots and now < self._looked + _LOOK:
            return
        self._looked = now
        found = {place.key: place for place in self._places()}
        for key, slot in list(self._slots.items()):
            slot.is_gone = key not in found
            if slot.is_gone and slot.work is None:
                slot.release()
                del self._slots[key]
        for key, place in found.items():
            self._slots.setdefault(key, Slot(place))

    # Units.

    def _hand_out(self) -> None:
        """Begin units where there is a place, and name those that wait in vain."""
        now = time.monotonic()
        # Computers on which one of these places measures already.
        measuring = {slot.place.host for slot in self._slots.values() if slot.actor}
        for slot in self._slots.values():
            if slot.work is not None or slot.is_gone or now < slot.rests_until:
                continue
            if slot.actor is None and slot.place.host in measuring:
                continue
            work = next((w for w in self._pending if self._fits(w, slot.place)), None)
            if work is not None:
                self._pending.remove(work)
            else:
                work = self._slow_one(slot.place)
            if work is not None:
                self._note_use(work.unit, slot.place.machine)
                if slot.begin(work):
                    measuring.add(slot.place.host)
                else:
                    self._give_back(slot)
            else:
                slot.release()  # somebody else may want to measure there
        for work in list(self._pending):
            if any(self._fits(work, slot.place) for slot in self._slots.values() if not slot.is_gone):
                work.waits_since = now
            elif now > work.waits_since + (self._patience if work.lost or not work.faults else 0.0):
                self._pending.remove(work)
                self._fail(work, "there is no other machine that could take it")
        self._tell()

    def _fits(self, work: Work, place: Place) -> bool:
        unit = work.unit
        if place.key in work.shunned or place.machine in unit.avoid:
            return False
        if unit.kind and unit.kind != place.kind:
            return False
        return not unit.series or place.machine not in self._used.get(unit.series, ())

    def _slow_one(self, place: Place) -> Work | None:
        """A unit that runs elsewhere for much longer than units take, and nowhere a second time."""
        if self._pending or not self._seconds:
            return None
        running = Counter(id(slot.work) for slot in self._slots.values() if slot.work is not None)
        long = max(_SLOW * float(np.median(self._seconds)), _SLOW_SECONDS)
        for slot in self._slots.values():
            work = slot.work
            if work is None or running[id(work)] > 1 or not self._fits(work, place):
                continue
            if not slot.is_ready:
                continue  # it may wait for others who measure there
            if time.monotonic() - slot.since > long:
                return work
        return None

    def _give_back(self, slot: Slot) -> None:
        """Somebody else measures there: the unit waits, or goes elsewhere, which is no fault."""
        work = slot.work
        assert work is not None
        self._drop_use(work.unit, slot.place.machine)
        slot.release()
        slot.rests_until = time.monotonic() + _REST
        if not any(other.work is work for other in self._slots.values()):
            self._pending.insert(0, work)

    def _collect(self) -> None:
        """Take what is finished."""
        slot_of = {slot.ref: slot for slot in self._slots.values() if slot.ref is not None}
        if not slot_of:
            time.sleep(_STEP)
            return
        done, _ = self._ray.wait(list(slot_of), num_returns=1, timeout=_STEP)
        for ref in done:
            slot = slot_of[ref]
            try:
                value = self._ray.get(ref)
            except Exception as cause:  # Ray's own kinds, and whatever the function raised
                self._fault(slot, reason_of(cause))
                continue
            if slot.is_ready:
                self._finish(slot, value)
            elif value:
                slot.start()
            else:
                self._give_back(slot)

    def _finish(self, slot: Slot, value: Mapping[str, Any]) -> None:
        work, machine = slot.work, slot.place.machine
        assert work is not None
        seconds = time.monotonic() - slot.since
        slot.work = slot.ref = None
        if "error" in value:
            if value["exit_code"] != 1 and value["kind"] not in _OF_A_MACHINE:
                self._fail(work, value["error"], machine, user_error=True)
            else:
                self._retry(work, slot, value["error"])
            return
        notes = list(value["notes"])
        if self._kept is not None:
            self._kept.put(
                work.unit.name,
                {
                    "machine": machine,
                    "tries": work.tries,
                    "seconds": seconds,
                    "notes": notes,
                    "answer": value["answer"],
                },
            )
        self._seconds.append(seconds)
        self._outcomes[work.unit.name] = Outcome(
            work.unit.name,
            value["answer"],
            machine,
            tries=work.tries,
            seconds=seconds,
            faults=tuple(work.faults),
            notes=tuple(notes),
        )
        self._end_twins(work)
        self._tell()

    def _end_late_ones(self) -> None:
        now = time.monotonic()
        for slot in self._slots.values():
            if slot.work is None:
                continue
            limit = self._limit if slot.is_ready else _START_SECONDS
            if now > slot.since + limit:
                what = "took longer than" if slot.is_ready else "did not start within"
                self._fault(slot, f"{what} {limit:g} s")

    def _fault(self, slot: Slot, reason: str) -> None:
        """The process is of no use any more, or never was."""
        work = slot.work
        assert work is not None
        slot.release()
        self._retry(work, slot, reason)

    def _retry(self, work: Work, slot: Slot, reason: str) -> None:
        work.shunned.add(slot.place.key)
        work.faults.append(f"{slot.place.machine}: {reason}")
        work.lost = reason == ENDED
        self._drop_use(work.unit, slot.place.machine)
        if any(other.work is work for other in self._slots.values()):
            return  # its twin goes on
        if len(work.faults) >= _TRIES:
            self._fail(work, work.faults[-1], slot.place.machine)
        else:
            work.waits_since = time.monotonic()
            self._pending.insert(0, work)

    def _fail(self, work: Work, reason: str, machine: str = "", *, user_error: bool = False) -> None:
        if not user_error and work.faults and reason not in work.faults:
            reason = f"{reason} after {'; '.join(work.faults)}"
        self._outcomes[work.unit.name] = Outcome(
            work.unit.name,
            machine=machine,
            failure=reason,
            user_error=user_error,
            tries=work.tries,
            faults=tuple(work.faults),
        )
        self._end_twins(work)

    def _end_twins(self, work: Work) -> None:
        for slot in self._slots.values():
            if slot.work is work:
                slot.release()

    def _note_use(self, unit: Unit, machine: str) -> None:
        if unit.series:
            self._used.setdefault(unit.series, set()).add(machine)

    def _drop_use(self, unit: Unit, machine: str) -> None:
        self._used.get(unit.series, set()).discard(machine)

    def _tell(self) -> None:
        if self._progress is None:
            return
        running = [slot.place.machine for slot in self._slots.values() if slot.work is not None]
        shown = f"on {', '.join(running[:3])}{' ...' if len(running) > 3 else ''}"
        self._progress(len(self._outcomes), self._total, shown if running else "wait for a machine")
