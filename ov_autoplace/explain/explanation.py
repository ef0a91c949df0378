"""Why a placement costs what it costs: its subgraphs, its groups, and the tensors that cross between them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ov_autoplace._base.arrays import BoolArray, FloatArray, IntArray
from ov_autoplace._base.text import milliseconds
from ov_autoplace.cost.table import CostTable
from ov_autoplace.explain.timeline import Cut, Timeline
from ov_autoplace.plan.placement import Schedule
from ov_autoplace.plan.simulator import simulate, simulate_batch
from ov_autoplace.problem.constraints import pinned_devices

if TYPE_CHECKING:
    from ov_autoplace.plan.decision import Candidate

__all__ = ["Explanation", "GroupCost"]

_MOST_VISITS = 2_000_000  # nodes visited while reasons are simulated: about a second
_FEWEST_SIMULATED = 16
_BATCH_NUMBERS = 2_000_000  # device indices simulated at once, which bounds the memory


@dataclass(frozen=True)
class GroupCost:
    """One group of ops.

    Attributes:
        name: Its heaviest op.
        op_type: Type of that op, or an empty string.
        ops: Number of ops.
        subgraph: Number of its subgraph; -1 = an input, a constant or an output, which lanes do not run.
        device: Where it runs.
        seconds: Its time on each device; ``inf`` = cannot run there.
        reason: Why it is where it is.
    """

    name: str
    op_type: str
    ops: int
    subgraph: int
    device: str
    seconds: dict[str, float]
    reason: str


class Explanation(ABC):
    """A placement of a cost table's groups, taken apart.

    How it runs is up to the kind: in HETERO's turns, or on lanes that work at once.

    Args:
        table: The cost table.
        assignment: Device, or lane, of each group, ``int32[G]``.
        pins: Device by name pattern, as the placement was asked for; reasons name them.

    Attributes:
        objective: What the simulator calls this way to run.
        part, place: What a placement is cut into, and where a part runs, for headings.
    """

    objective: ClassVar[str]
    part: ClassVar[str]
    place: ClassVar[str]

    def __init__(self, table: CostTable, assignment: IntArray, pins: Mapping[str, str] | None = None) -> None:
        self.table = table
        self.assignment = assignment
        self.pins = dict(pins or {})
        self.schedule: Schedule = simulate(table, assignment, self.objective)
        allowed = pinned_devices(table, self.pins)
        elsewhere = (table.supported & ~allowed).any(axis=1)
        self._is_pinned = elsewhere & allowed[np.arange(len(table)), assignment]
        self._own_seconds = table.op_seconds[np.arange(len(table)), assignment]

    @abstractmethod
    def messages(self) -> Iterator[tuple[int, float, list[int]]]:
        """What groups make for others: the group, the bytes, and groups that read it."""

    @abstractmethod
    def receivers(self, producer: int, readers: Sequence[int]) -> dict[int, int]:
        """The parts that a result is transferred to, each with a group that reads it there."""

    @abstractmethod
    def crosses(self, links: IntArray) -> BoolArray:
        """Whether a result is transferred from one group to another.

        Args:
            links: Groups that make something and those that read it, ``int32[E, 2]``.

        Returns:
            ``bool[E]``.
        """

    @cached_property
    @abstractmethod
    def predicted(self) -> Timeline:
        """The run that the costs predict."""

    @abstractmethod
    def assignment_of(self, candidate: Candidate) -> IntArray:
        """Where a candidate puts the groups, ``int32[G]``; empty where that is not known."""

    @property
    def search_seconds(self) -> float | None:
        """For how long a better placement is searched; ``None`` = until one is found."""
        return None

    def waits(self) -> Iterator[tuple[int, int, float]]:
        """Which parts wait for which others, each pair once, with the seconds of the longest transfer."""
        part_of, device_of = self.schedule.subgraph_of, self.assignment
        longest: dict[tuple[int, int], float] = {}
        for producer, size, readers in self.messages():
            source, here = int(part_of[producer]), int(device_of[producer])
            for reader in readers:
                target, there = int(part_of[reader]), int(device_of[reader])
                if target == source or min(source, target) < 0:
                    continue
                seconds = self.transfer_seconds(here, there, size) if here != there else 0.0
                longest[source, target] = max(longest.get((source, target), 0.0), seconds)
        return ((source, target, seconds) for (source, target), seconds in longest.items())

    @property
    def columns(self) -> dict[str, str]:
        """What is worth a column of its own: devices by name; of lanes, which are alike, the first."""
        columns: dict[str, str] = {}
        for owner, lane in zip(self.table.owners, self.table.devices, strict=True):
            columns.setdefault(owner, lane)
        return columns

    def num_ops(self, g: int) -> int:
        """Number of ops of a group."""
        return len(self.table.members[g]) if self.table.members is not None else 1

    def heaviest_groups(self, count: int) -> list[GroupCost]:
        """The groups that take the most time where they are placed."""
        return self.group_costs(self._heaviest()[:count].tolist())

    def left_on_slower(self, count: int) -> list[GroupCost]:
        """The groups that would run faster on another device, those that lose the most time first."""
        loss = self._own_seconds - self.table.op_seconds.min(axis=1)
        order = np.argsort(-loss, kind="stable")[:count]
        return self.group_costs(order[loss[order] > 0].tolist())

    def all_groups(self) -> list[GroupCost]:
        """Every group, in topological order.

        Simulating each group's moves takes too long in large graphs. There the heaviest groups are
        simulated, and the others' reasons compare run times only.
        """
        moves = max(self.table.num_devices - 1, 1) * max(self._nodes, 1)
        simulated = self._heaviest()[: max(_MOST_VISITS // moves, _FEWEST_SIMULATED)]
        reasons = self._reasons(simulated.tolist())
        return [self._group_cost(g, reasons.get(g) or self._brief_reason(g)) for g in range(len(self.table))]

    def groups_matching(self, pattern: str) -> list[GroupCost]:
        """The groups of which an op's name matches a shell-style pattern, in topological order."""
        found = [g for g, ops in enumerate(self.members()) if any(fnmatchcase(op, pattern) for op in ops)]
        return self.group_costs(found)

    def members(self) -> tuple[tuple[str, ...], ...]:
        """The ops of each group."""
        return self.table.members or tuple((name,) for name in self.table.names)

    def cuts(self) -> list[Cut]:
        """Every paid transfer, the dearest first."""
        table, subgraph_of = self.table, self.schedule.subgraph_of
        found = []
        for producer, size, readers in self.messages():
            source = int(self.assignment[producer])
            for subgraph, reader in self.receivers(producer, readers).items():
                target = int(self.assignment[reader])
                found.append(
                    Cut(
                        producer=table.names[producer],
                        source_subgraph=int(subgraph_of[producer]),
                        source_device=table.devices[source],
                        target_subgraph=subgraph,
                        target_device=table.devices[target],
                        bytes=size,
                        seconds=self.transfer_seconds(source, target, size),
                    )
                )
        return sorted(found, key=lambda cut: (-cut.seconds, cut.source_subgraph, cut.target_subgraph))

    def transfer_seconds(self, source: int, target: int, size: float) -> float:
        """What bytes take from one device, or lane, to another."""
        table = self.table
        return float(
            table.transfer_latency[source, target] + table.transfer_seconds_per_byte[source, target] * size
        )

    def group_costs(self, groups: Iterable[int]) -> list[GroupCost]:
        """Some groups, by number, each with what moving it alone would change."""
        chosen = list(groups)
        reasons = self._reasons(chosen)
        return [self._group_cost(g, reasons[g]) for g in chosen]

    def _group_cost(self, g: int, reason: str) -> GroupCost:
        table = self.table
        return GroupCost(
            name=table.names[g],
            op_type=table.op_types[g] if table.op_types is not None else "",
            ops=self.num_ops(g),
            subgraph=int(self.schedule.subgraph_of[g]),
            device=self._device(g),
            seconds=dict(zip(table.devices, table.op_seconds[g].tolist(), strict=True)),
            reason=reason,
        )

    def _reasons(self, groups: Sequence[int]) -> dict[int, str]:
        """Compare with moving each group alone to each other device."""
        table = self.table
        moves = [
            (g, d)
            for g in groups
            for d in np.flatnonzero(table.supported[g]).tolist()
            if d != self.assignment[g]
        ]
        changes: list[FloatArray] = [np.empty(0)]
        batch = max(_BATCH_NUMBERS // max(len(table), 1), 1)
        for first in range(0, len(moves), batch):
            part = np.array(moves[first : first + batch])
            moved = np.repeat(self.assignment[None, :], len(part), axis=0)
            moved[np.arange(len(part)), part[:, 0]] = part[:, 1]
            latencies = simulate_batch(table, moved, objective=self.objective)
            changes.append(latencies - self.schedule.latency_seconds)
        best: dict[int, tuple[float, int]] = {}
        for (g, d), change in zip(moves, np.concatenate(changes).tolist(), strict=True):
            best[g] = min(best.get(g, (np.inf, d)), (change, d))
        return {g: self._reason(g, *best[g]) if g in best else self._only_here(g) for g in groups}

    def _reason(self, g: int, change: float, other: int) -> str:
        seconds, here = self.table.op_seconds[g], int(self.assignment[g])
        fastest = seconds[here] <= seconds.min()
        what = "fastest here" if fastest else "stays with its neighbours"
        if self.table.device_of[other] == self.table.device_of[here]:
            what = "as fast on all lanes of its device"
        if change < 0:
            what = "predicted to be better elsewhere"
        if self._is_pinned[g]:
            what = "pinned here"
        if not np.isfinite(change):
            return f"{what}: alone on {self.table.devices[other]}, it would be cut from what it belongs to"
        extra = f"{milliseconds(abs(change))} ms {'less' if change < 0 else 'more'}"
        return f"{what}: alone on {self.table.devices[other]}, the model takes {extra}"

    def _brief_reason(self, g: int) -> str:
        """A reason from run times alone."""
        seconds, here = self.table.op_seconds[g], int(self.assignment[g])
        if np.isfinite(seconds).sum() == 1:
            return self._only_here(g)
        fastest = int(np.argmin(seconds))
        gain = float(seconds[here] - seconds[fastest])
        if gain <= 0:
            lanes = self.table.device_of == self.table.device_of[here]
            return "as fast on all lanes of its device" if lanes.sum() > 1 else "fastest here"
        what = "pinned here" if self._is_pinned[g] else "stays with its neighbours"
        return f"{what}: {self.table.devices[fastest]} alone would save {milliseconds(gain)} ms"

    def _only_here(self, g: int) -> str:
        return f"only {self._device(g)} can run it"

    def _heaviest(self) -> IntArray:
        return np.argsort(-self._own_seconds, kind="stable").astype(np.int32)

    @property
    def _nodes(self) -> int:
        """Nodes that one simulation visits."""
        wiring = self.table.wiring
        return len(self.table) if wiring is None else len(wiring.node_group)

    def _device(self, g: int) -> str:
        return self.table.devices[int(self.assignment[g])]
