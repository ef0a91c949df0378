"""What all commands of a fleet share: the machines by kind, what each of them measures, and what is kept."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ov_autoplace._base.progress import Progress
from ov_autoplace.errors import FleetError
from ov_autoplace.fleet.kept import KeptAnswers
from ov_autoplace.fleet.kinds import Kind
from ov_autoplace.fleet.members import Fleet, Member, usable
from ov_autoplace.fleet.units import Outcome, Unit
from ov_autoplace.fleet.workers import Workers

__all__ = ["FleetRun", "Group"]

_KINDS = "kinds"


@dataclass(eq=False)
class Group:
    """The machines of one kind, and what is still missing of them.

    Attributes:
        kind: Their kind.
        machines: Names of those that were there when the run began.
        missing: What was asked for and is not there, a sentence each.
        notes: What machines warned of, and what went wrong on the way and was made up for.
    """

    kind: Kind
    machines: tuple[str, ...]
    missing: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class FleetRun:
    """One command on a fleet.

    Args:
        address: Of the cluster, for sentences; the caller is connected to it.
        wanted: Names of the kinds that are asked for; empty = all.
        most: Measure on so many machines of a kind at most; ``None`` = on all.
        limit_seconds: How long one measurement on one machine may take.
        kept: Where what was measured is kept.
        progress: Called as the work goes on.

    Raises:
        FleetError: The cluster has no machine to measure on, or none of a kind that is asked for.
    """

    def __init__(
        self,
        address: str,
        *,
        wanted: Sequence[str] = (),
        most: int | None = None,
        limit_seconds: float,
        kept: KeptAnswers,
        progress: Progress,
    ) -> None:
        self.fleet = Fleet()
        self.members = self.fleet.members()
        self._most = most
        self.limit_seconds = limit_seconds
        self._kept = kept
        self._progress = progress
        earlier = _earlier_kinds(kept)
        if not earlier:
            usable(self.members, address)
        self.groups = _groups(self.members, earlier)
        unknown = [name for name in wanted if name not in self.groups]
        if unknown:
            raise FleetError(
                f"the cluster at {address} has no machine of the kind {unknown[0]!r}; "
                f"there are {', '.join(self.groups)}"
            )
        kinds = {
            name: {
                "devices": list(g.kind.devices),
                "facts": list(g.kind.facts),
                "machines": list(g.machines),
            }
            for name, g in self.groups.items()
        }
        kept.put(_KINDS, {"kinds": kinds})
        self.groups = {name: group for name, group in self.groups.items() if not wanted or name in wanted}

    @property
    def unused(self) -> list[Member]:
        """Nodes of the cluster that cannot be measured on."""
        return [member for member in self.members if member.kind is None]

    def on_each(
        self,
        what: str,
        function: str,
        requests: Mapping[str, Mapping[str, Any]],
        data: tuple[Any, ...] = (),
    ) -> dict[str, dict[str, Any]]:
        """Have machines of every kind do the same, each once.

        Args:
            what: In a word, for names.
            function: See :class:`~ov_autoplace.fleet.units.Unit`.
            requests: What a machine gets, by kind.
            data: The same.

        Returns:
            Answer by machine, by kind; kinds of which no machine answered are missing.
        """
        units = []
        for name, request in requests.items():
            series, here = f"{what} {name} {_digest(request)}", len(self.groups[name].machines)
            count = here if self._most is None else min(self._most, here)
            while self._kept.get(f"{series} {count + 1}") is not None:
                count += 1  # of an earlier run, when there were more
            units += [
                Unit(f"{series} {i + 1}", function, request, data, kind=name, series=series)
                for i in range(count)
            ]
        outcomes = self._run(what, units)
        answers: dict[str, dict[str, Any]] = {}
        for unit in units:
            outcome = outcomes[unit.name]
            if not outcome.failure:
                answers.setdefault(unit.kind, {})[outcome.machine] = outcome.answer
        return answers

    def on_one(
        self,
        what: str,
        function: str,
        requests: Mapping[str, Mapping[str, Any]],
        data: tuple[Any, ...] = (),
        avoid: Mapping[str, Sequence[str]] | None = None,
    ) -> dict[str, Outcome]:
        """Have one machine of each kind do something.

        Args:
            what: In a word, for names.
            function: See :class:`~ov_autoplace.fleet.units.Unit`.
            requests: What it gets, by kind.
            data: The same.
            avoid: Machines that shall not do it, by kind.

        Returns:
            What became of it, by kind; failures are also noted as missing.
        """
        units = [
            # What was answered to another request is not taken for the answer to this one.
            Unit(
                f"{what} {name} {_digest(request)}",
                function,
                request,
                data,
                kind=name,
                avoid=tuple((avoid or {}).get(name, ())),
            )
            for name, request in requests.items()
        ]
        outcomes = self._run(what, units)
        return {unit.kind: outcomes[unit.name] for unit in units}

    def _run(self, what: str, units: Sequence[Unit]) -> dict[str, Outcome]:
        workers = Workers(lambda: self.fleet.places(list(self.groups)), limit_seconds=self.limit_seconds)
        outcomes = workers.run(units, self._kept, self._progress)
        for unit in units:
            outcome, group = outcomes[unit.name], self.groups[unit.kind]
            if outcome.failure:
                group.missing.append(f"{what}: {outcome.failure}")
            else:
                group.notes += [f"{what}: {fault}" for fault in outcome.faults]
                group.notes += [f"{outcome.machine}: {note}" for note in outcome.notes]
        return outcomes


def _groups(members: Sequence[Member], earlier: Mapping[str, Kind]) -> dict[str, Group]:
    """Machines by kind; of kinds of an earlier run there may be none."""
    found: dict[str, Group] = {name: Group(kind, ()) for name, kind in earlier.items()}
    for member in members:
        if member.kind is not None:
            group = found.setdefault(member.kind.name, Group(member.kind, ()))
            group.machines = (*group.machines, member.machine)
    return dict(sorted(found.items()))


def _digest(request: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()[:12]


def _earlier_kinds(kept: KeptAnswers) -> dict[str, Kind]:
    found = kept.get(_KINDS)
    if found is None:
        return {}
    return {
        name: Kind(name, tuple(own["devices"]), tuple(own["facts"])) for name, own in found["kinds"].items()
    }
