"""Why a placement costs what it costs: its subgraphs, its groups, and the tensors that cross between them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np

from ov_autoplace._arrays import IntArray
from ov_autoplace.cost.table import CostTable
from ov_autoplace.placement.placement import Schedule
from ov_autoplace.simulator import simulate, simulate_batch

__all__ = ["Cut", "Explanation", "GroupCost", "SubgraphCost"]


@dataclass(frozen=True)
class SubgraphCost:
    """One submodel of HETERO.

    Attributes:
        index: Number in order of first appearance.
        device: Where it runs.
        ops: Number of ops.
        seconds: Its groups' time there, without launch and hand-overs.
        first, last: Heaviest op of its first and last group.
    """

    index: int
    device: str
    ops: int
    seconds: float
    first: str
    last: str


@dataclass(frozen=True)
class GroupCost:
    """One group of ops.

    Attributes:
        name: Its heaviest op.
        op_type: Type of that op, or an empty string.
        ops: Number of ops.
        subgraph: Number of its subgraph.
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


@dataclass(frozen=True)
class Cut:
    """One tensor that is handed over to one subgraph."""

    producer: str
    source_subgraph: int
    source_device: str
    target_subgraph: int
    target_device: str
    bytes: float
    seconds: float


class Explanation:
    """A placement of a cost table's groups, taken apart.

    Args:
        table: The cost table.
        assignment: Device of each group, ``int32[G]``.
    """

    def __init__(self, table: CostTable, assignment: IntArray) -> None:
        self.table = table
        self.assignment = assignment
        self.schedule: Schedule = simulate(table, assignment)
        self._own_seconds = table.op_seconds[np.arange(len(table)), assignment]

    def subgraphs(self) -> list[SubgraphCost]:
        """All subgraphs in order of first appearance."""
        rows = []
        for index in range(self.schedule.subgraphs):
            groups = np.flatnonzero(self.schedule.subgraph_of == index)
            if not len(groups):
                continue
            rows.append(
                SubgraphCost(
                    index=index,
                    device=self._device(int(groups[0])),
                    ops=sum(self._ops(g) for g in groups.tolist()),
                    seconds=float(self._own_seconds[groups].sum()),
                    first=self.table.names[groups[0]],
                    last=self.table.names[groups[-1]],
                )
            )
        return rows

    def heaviest_groups(self, count: int) -> list[GroupCost]:
        """The groups that take the most time where they are placed."""
        order = np.argsort(-self._own_seconds, kind="stable")[:count]
        return self._group_costs(order.tolist())

    def groups_matching(self, pattern: str) -> list[GroupCost]:
        """The groups of which an op's name matches a shell-style pattern, in topological order."""
        members = self.table.members or tuple((name,) for name in self.table.names)
        found = [g for g, ops in enumerate(members) if any(fnmatchcase(op, pattern) for op in ops)]
        return self._group_costs(found)

    def cuts(self) -> list[Cut]:
        """Every paid hand-over, the dearest first."""
        table, subgraph_of = self.table, self.schedule.subgraph_of
        found = []
        for t in np.flatnonzero(~table.tensor_is_constant).tolist():
            producer = int(table.tensor_producer[t])
            readers = table.tensor_consumers[table.tensor_offsets[t] : table.tensor_offsets[t + 1]]
            # A tensor is handed over once per receiving subgraph, however many groups read it there.
            receivers = {int(subgraph_of[g]): int(g) for g in readers}
            receivers.pop(int(subgraph_of[producer]), None)
            source = int(self.assignment[producer])
            for subgraph, reader in receivers.items():
                target = int(self.assignment[reader])
                per_byte = table.transfer_seconds_per_byte[source, target]
                size = float(table.tensor_bytes[t])
                found.append(
                    Cut(
                        producer=table.names[producer],
                        source_subgraph=int(subgraph_of[producer]),
                        source_device=table.devices[source],
                        target_subgraph=subgraph,
                        target_device=table.devices[target],
                        bytes=size,
                        seconds=float(table.transfer_latency[source, target] + per_byte * size),
                    )
                )
        return sorted(found, key=lambda cut: (-cut.seconds, cut.source_subgraph, cut.target_subgraph))

    def _group_costs(self, groups: Iterable[int]) -> list[GroupCost]:
        table = self.table
        return [
            GroupCost(
                name=table.names[g],
                op_type=table.op_types[g] if table.op_types is not None else "",
                ops=self._ops(g),
                subgraph=int(self.schedule.subgraph_of[g]),
                device=self._device(g),
                seconds=dict(zip(table.devices, table.op_seconds[g].tolist(), strict=True)),
                reason=self._reason(g),
            )
            for g in groups
        ]

    def _reason(self, g: int) -> str:
        """Compare with moving the group alone to each other device."""
        here = int(self.assignment[g])
        others = [d for d in np.flatnonzero(self.table.supported[g]).tolist() if d != here]
        if not others:
            return f"only {self.table.devices[here]} can run it"
        moved = np.repeat(self.assignment[None, :], len(others), axis=0)
        moved[np.arange(len(others)), g] = others
        changes = simulate_batch(self.table, moved) - self.schedule.latency_seconds
        best = int(np.argmin(changes))
        other, change = self.table.devices[others[best]], float(changes[best])
        fastest = self.table.op_seconds[g, here] <= self.table.op_seconds[g, others].min()
        what = "fastest here" if fastest else "stays with its neighbours"
        if change < 0:
            what = "predicted to be better elsewhere"
        return f"{what}: alone on {other}, the model would take {change * 1e3:+.3f} ms"

    def _device(self, g: int) -> str:
        return self.table.devices[int(self.assignment[g])]

    def _ops(self, g: int) -> int:
        return len(self.table.members[g]) if self.table.members is not None else 1
