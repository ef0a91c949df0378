"""Pieces of work for a cluster, where they may run, and what became of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Outcome", "Place", "Unit"]


@dataclass(frozen=True)
class Place:
    """Where one unit runs at a time.

    Attributes:
        key: Tells places apart; another one when the node was started anew.
        machine: For people.
        node_id: Ray's.
        resources: What it takes of the node while it is in use.
        kind: Kind of machine; units may ask for one.
        host: Boot id of the computer, on which a unit is alone.
    """

    key: str
    machine: str
    node_id: str
    resources: Mapping[str, float]
    kind: str
    host: str


@dataclass(frozen=True)
class Unit:
    """A piece of work.

    Attributes:
        name: Tells units apart, also those of an earlier run.
        function: ``MODULE:NAME``, of a module that the nodes have; it gets ``request`` and ``data``.
        request: Plain JSON values.
        data: References of ``ray.put``.
        kind: The kind of machine that it wants; empty = any.
        series: Units of one series run on different machines; empty = anywhere.
        avoid: Machines on which it shall not run.
    """

    name: str
    function: str
    request: Any
    data: tuple[Any, ...] = ()
    kind: str = ""
    series: str = ""
    avoid: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Outcome:
    """What became of a unit.

    Attributes:
        name: Of the unit.
        answer: What its function gave; ``None`` where it failed.
        machine: Where it ran, or was tried last.
        failure: Why there is no answer; empty where there is one.
        user_error: The failure is the caller's to mend, and would be the same everywhere.
        tries: How often it was begun, here and in earlier runs.
        seconds: How long it ran, of the try that succeeded.
        faults: What went wrong on the way, a sentence each.
        notes: Warnings of the machine.
    """

    name: str
    answer: Any = None
    machine: str = ""
    failure: str = ""
    user_error: bool = False
    tries: int = 0
    seconds: float = 0.0
    faults: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
