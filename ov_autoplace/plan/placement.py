"""A placement: which device runs each op, with what is known about the answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import openvino as ov

from ov_autoplace._base.arrays import FloatArray, IntArray, frozen_array
from ov_autoplace._base.files import write_text_atomically
from ov_autoplace._base.json_fields import naming, read_json, shown
from ov_autoplace._base.text import is_unicode
from ov_autoplace.errors import PlacementError
from ov_autoplace.graph.names import unique_names
from ov_autoplace.plan.plan import Plan, SplitPlan, devices_of_ops, plan_of_groups

if TYPE_CHECKING:
    from ov_autoplace.cost.table import CostTable
    from ov_autoplace.plan.decision import Decision

__all__ = ["Placement", "Schedule"]


@dataclass(frozen=True, eq=False)
class Placement:
    """A device for each of M names (ops, or groups of ops).

    Attributes:
        devices: Device names that ``assignment`` indexes.
        names: What is placed, length M.
        assignment: Index into ``devices`` of each name, ``int32[M]``.
        members: Op friendly names behind each name, or ``None`` when the names are the ops.
        latency_seconds: Simulated latency, when the placement comes from a solver.
        lower_bound_seconds: Proven bound below every placement's simulated latency, when there is one.
        solver: Who proposed it.
        decision: How it was chosen among others, when :func:`ov_autoplace.place` chose it.
        given: Where the names are those of a model with folded shapes, which leaves more freedom than HETERO
            has in the model as it was given: the device of every op of that one, in a placement that HETERO
            can run there. ``annotate`` and ``count_subgraphs`` fold the model and take the names;
            :meth:`to_dict` and :meth:`save` speak of the model as it was given.
        plan: How it runs; where nothing is given, each op on its device in turns. Of a plan for a part of a
            CPU's threads, for lanes, or for many requests, the devices are those that HETERO would use.
    """

    devices: tuple[str, ...]
    names: tuple[str, ...]
    assignment: IntArray
    members: tuple[tuple[str, ...], ...] | None = None
    latency_seconds: float | None = None
    lower_bound_seconds: float | None = None
    solver: str = "given"
    decision: Decision | None = field(default=None, repr=False)
    given: Mapping[str, str] | None = field(default=None, repr=False)
    plan: Plan = None  # type: ignore[assignment]  # it is never None once made

    def __post_init__(self) -> None:
        """Make the plan that is not given."""
        if self.plan is None:
            made = plan_of_groups(self.devices, self.names, self.assignment, self.members)
            object.__setattr__(self, "plan", made)

    def to_dict(self) -> dict[str, str]:
        """Device of every op by friendly name."""
        return self.decided() if self.given is None else dict(self.given)

    def decided(self) -> dict[str, str]:
        """Device of every op that was placed, without regard to :attr:`given`."""
        return devices_of_ops(self.devices, self.names, self.assignment, self.members)

    @classmethod
    def from_dict(cls, mapping: Mapping[str, str]) -> Placement:
        """A placement from ``{op friendly name: device}``; devices are in order of appearance."""
        for name, device in mapping.items():
            if isinstance(name, str) and isinstance(device, str) and not is_unicode(name + device):
                raise PlacementError(
                    f"{name!r} is mapped to {device!r}, which holds the lone half of a surrogate pair: "
                    "no op and no device has such a name"
                )
            # OpenVINO would cut a device's name at a NUL.
            if not isinstance(name, str) or not (isinstance(device, str) and device and device.isprintable()):
                raise PlacementError(
                    f"a placement maps op names to device names, but {name!r} is mapped to {shown(device)}"
                )
        split = SplitPlan.of(mapping)
        return cls(split.listed, split.names, split.assignment)

    @classmethod
    def on_device(cls, model: ov.Model, device: str) -> Placement:
        """All ops of ``model`` on one device, named as ``make_names_unique`` would name them."""
        names = unique_names(op.get_friendly_name() for op in model.get_ordered_ops())
        return replace(cls.from_dict(dict.fromkeys(names, device)), solver=device)

    @classmethod
    def of_groups(cls, table: CostTable, assignment: IntArray, solver: str = "given") -> Placement:
        """A placement of a cost table's groups, ``assignment`` being ``int32[G]``."""
        return cls(
            devices=table.devices,
            names=table.names,
            assignment=frozen_array(assignment, np.int32),
            members=table.members,
            solver=solver,
        )

    def groups_of(self, table: CostTable) -> IntArray:
        """The assignment of ``table``'s groups, ``int32[G]`` indexing ``table.devices``.

        Raises:
            PlacementError: A group is missing, split over devices, or on a device that the table lacks.
        """
        if self.names is table.names and self.devices == table.devices:
            return self.assignment
        device_of = self.decided()
        position = {device: d for d, device in enumerate(table.devices)}
        result = np.empty(len(table), dtype=np.int32)
        groups = table.members if table.members is not None else tuple((name,) for name in table.names)
        for g, ops in enumerate(groups):
            found = {device_of[op] for op in ops if op in device_of}
            if not found and table.names[g] in device_of:
                found = {device_of[table.names[g]]}
            if len(found) != 1:
                what = "is not placed" if not found else f"is split over {', '.join(sorted(found))}"
                raise PlacementError(f"group {table.names[g]!r} {what}; place all of its ops on one device")
            device = found.pop()
            if device not in position:
                raise PlacementError(
                    f"group {table.names[g]!r} is placed on {device!r}; "
                    f"the cost table knows {', '.join(table.devices)}"
                )
            result[g] = position[device]
        return frozen_array(result, np.int32)

    def save(self, path: str | Path) -> None:
        """Write the flat JSON object ``{op friendly name: device}`` that OpenVINO's samples read."""
        # One entry a line, as with indent=1, which only the slow encoder knows.
        entries = json.dumps(self.to_dict(), ensure_ascii=False, separators=(",\n ", ": "))[1:-1]
        write_text_atomically(path, f"{{\n {entries}\n}}\n" if entries else "{}\n")

    @classmethod
    def load(cls, path: str | Path) -> Placement:
        """Read what :meth:`save` wrote.

        Raises:
            PlacementError: The file is missing or is not a flat JSON object of strings.
        """
        data = read_json(path, PlacementError, "an affinity file")
        if not isinstance(data, dict):
            raise PlacementError(
                f"{path}: an affinity file holds one flat JSON object, not a {type(data).__name__}"
            )
        with naming(path, PlacementError):
            return cls.from_dict(data)


@dataclass(frozen=True, eq=False)
class Schedule:
    """What a placement costs on a cost table: S subgraphs (on lanes: submodels), and when they run.

    Attributes:
        latency_seconds: Time of one inference that has the devices for itself.
        seconds_per_request: What the objective makes short: the latency, or under ``rate``, where many
            requests are in flight, the time in which the busiest device does its part of one.
        subgraphs: Number of subgraphs that HETERO would compile, or of submodels, S.
        device_seconds: Busy time of each device or lane, in order of the table's devices; under ``rate`` with
            the transfers that it receives.
        memory_bytes: The most bytes that each device or lane holds at once: weights, and results that live
            together.
        transfer_seconds: Time spent in transfers, whoever else works meanwhile.
        subgraph_of: Subgraph of each group, ``int32[G]``, numbered in order of first appearance. A group of
            constants that HETERO copies to their readers has a number of its own; under ``overlap``, inputs,
            constants and outputs alone have -1.
        lane_of: Where each subgraph runs, ``int32[S]``: an index into the table's devices.
        start_seconds, finish_seconds: From the launch of each subgraph to its end, ``float64[S]``, in seconds
            from the start of the request. All three are empty where the placement cannot run under
            ``overlap``.
    """

    latency_seconds: float
    seconds_per_request: float
    subgraphs: int
    device_seconds: tuple[float, ...]
    memory_bytes: tuple[float, ...]
    transfer_seconds: float
    subgraph_of: IntArray
    lane_of: IntArray
    start_seconds: FloatArray
    finish_seconds: FloatArray

    @property
    def rate_per_second(self) -> float:
        """How many requests in a second, one after the other, or under ``rate`` side by side."""
        return 1.0 / self.seconds_per_request if self.seconds_per_request > 0 else float("inf")
