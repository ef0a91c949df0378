"""A plan: how a model is to be run. It is the answer of a decision, whatever kind of answer that is.

Nobody but the plan itself asks of what kind it is: it has a name, knows its devices, becomes one JSON object,
and tells whoever compiles it (:class:`Compiler`) what it is made of. No plan says anything about times.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Protocol, TypeAlias, TypeVar

import numpy as np

from ov_autoplace._base.arrays import IntArray, frozen_array
from ov_autoplace._base.json_fields import Record, shown
from ov_autoplace.devices.widths import Width
from ov_autoplace.errors import DeviceError, PlacementError
from ov_autoplace.plan.lane import Form, Lane, device_named, read_forms, read_lane, texts_of

__all__ = [
    "HINT",
    "KINDS",
    "Compiler",
    "LanePlan",
    "Member",
    "ModelPlan",
    "Plan",
    "PoolCompiler",
    "PoolPlan",
    "SplitPlan",
    "WholePlan",
    "plan_of_groups",
    "read_plan",
]

HINT = "PERFORMANCE_HINT"
"""The property of OpenVINO that asks for a rate."""

_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)
_SCHEMA, _VERSION = "ov_autoplace.plan", 1
_MOST, _MOST_REQUESTS = 2**31 - 1, 1_000_000
_HINTS = ("THROUGHPUT", "CUMULATIVE_THROUGHPUT")


class Compiler(Protocol[_T_co]):
    """Whoever compiles one model by plans: for the user, or to measure it."""

    def compile_whole(self, plan: WholePlan) -> _T_co:
        """The whole model on one device."""

    def compile_split(self, plan: SplitPlan) -> _T_co:
        """Each op on one device, in HETERO's turns."""

    def compile_lanes(self, plan: LanePlan) -> _T_co:
        """Submodels that run at once."""


class PoolCompiler(Compiler[_T_co], Protocol[_T_co]):
    """Whoever compiles several of a model to be one, too."""

    def compile_pool(self, plan: PoolPlan) -> _T_co:
        """Compiled models whose requests take turns."""


class Plan(ABC):
    """How a model is to be run."""

    kind: ClassVar[str]
    """What tells it from other plans in JSON."""

    @property
    @abstractmethod
    def name(self) -> str:
        """For tables and sentences."""

    @property
    @abstractmethod
    def key(self) -> Hashable:
        """Equal for equal plans of the same ops or groups of ops."""

    @property
    @abstractmethod
    def devices(self) -> tuple[str, ...]:
        """OpenVINO's names of the devices that it uses, each once."""

    @property
    def width(self) -> Width | None:
        """On how many threads of its one device it runs; ``None`` = as OpenVINO does by itself."""
        return None

    @property
    def threads(self) -> str:
        """That in words; empty where it is up to OpenVINO."""
        return self.width.label if self.width is not None else ""

    @property
    def lane_count(self) -> int:
        """How many lanes run its submodels at once; 0 where none do."""
        return 0

    @property
    def is_default(self) -> bool:
        """Whether it is what OpenVINO runs by itself, which an answer must be faster than."""
        return False

    @property
    def is_divided(self) -> bool:
        """Whether it runs on a part of a CPU's threads, or on several parts at once."""
        return bool(self.threads) or self.lane_count > 0

    @property
    def serves_many(self) -> bool:
        """Whether it is for many requests at once."""
        return self.requests > 0

    @property
    def requests(self) -> int:
        """How many requests should be in flight; 0 = one at a time."""
        return 0

    @property
    @abstractmethod
    def models(self) -> tuple[ModelPlan, ...]:
        """The compiled models whose requests take turns."""

    @property
    def one_model(self) -> ModelPlan:
        """The same, where it is compiled to one model.

        Raises:
            PlacementError: It is not.
        """
        raise PlacementError(f"{self.name} is more than one compiled model")

    def computes_like(self, makes: Mapping[str, str]) -> Hashable:
        """Equal for plans whose outputs are the same, as the same code computes them.

        Args:
            makes: What each device is, which is the same for aliases of one.
        """
        return self.key

    @abstractmethod
    def compile(self, compiler: PoolCompiler[_T]) -> _T:
        """Have it compiled."""

    def check_fits(self, devices: Collection[str], ops: Collection[str]) -> None:
        """Refuse it where it is for other devices or another model.

        Args:
            devices: Those that may be used.
            ops: Friendly names of all ops of the model.

        Raises:
            PlacementError: It is.
        """
        for device in self.devices:
            if device not in devices:
                raise PlacementError(f"it runs on {device!r}, not on {', '.join(devices)}")

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON, which :func:`read_plan` reads."""
        return {"schema": _SCHEMA, "version": _VERSION, "kind": self.kind, **self.fields()}

    @abstractmethod
    def fields(self) -> dict[str, Any]:
        """What is its own in JSON."""

    @classmethod
    @abstractmethod
    def read(cls, record: Record) -> Plan:
        """Read what :meth:`fields` wrote.

        Raises:
            PlacementError: It is nothing of the kind.
        """

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plan) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


class ModelPlan(Plan):
    """A plan that is compiled to one model."""

    @property
    def models(self) -> tuple[ModelPlan, ...]:  # noqa: D102
        return (self,)

    @property
    def one_model(self) -> ModelPlan:  # noqa: D102
        return self

    @property
    def fewest_requests(self) -> int:
        """How many requests keep all of it busy, each of which is in one place at a time."""
        return 1

    @abstractmethod
    def compile(self, compiler: Compiler[_T]) -> _T:
        """Have it compiled."""


@dataclass(frozen=True, eq=False)
class WholePlan(ModelPlan):
    """The whole model on one device, also on some of the threads of a CPU.

    Attributes:
        device: Its name; also a virtual one with its devices, like ``AUTO:GPU,CPU``.
        properties: OpenVINO properties, as text, beside those that are asked for.
    """

    kind = "whole"

    device: str
    width: Width | None = None
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Like ``CPU (1 thread)``."""
        return f"{self.device} ({self.threads})" if self.threads else self.device

    @property
    def key(self) -> Hashable:  # noqa: D102
        return self.kind, self.device, self.width, tuple(sorted(self.properties.items()))

    @property
    def devices(self) -> tuple[str, ...]:  # noqa: D102
        _, _, listed = self.device.partition(":")
        return tuple(listed.split(",")) if listed else (self.device,)

    @property
    def is_default(self) -> bool:  # noqa: D102
        return not self.threads and not self.properties

    @property
    def all_properties(self) -> dict[str, str]:
        """What it is compiled with."""
        return {**(self.width.properties if self.width is not None else {}), **self.properties}

    def computes_like(self, makes: Mapping[str, str]) -> Hashable:  # noqa: D102
        return makes.get(self.device, self.key)

    def compile(self, compiler: Compiler[_T]) -> _T:  # noqa: D102
        return compiler.compile_whole(self)

    def fields(self) -> dict[str, Any]:  # noqa: D102
        width = str(self.width) if self.threads else None
        return {"device": self.device, "width": width, "properties": dict(self.properties)}

    @classmethod
    def read(cls, record: Record) -> WholePlan:  # noqa: D102
        return cls(device_named(record, "device"), _width(record), texts_of(record.record("properties")))


@dataclass(frozen=True, eq=False)
class SplitPlan(ModelPlan):
    """Each op on one of D devices, which work in turns.

    Attributes:
        names: What is placed, M ops, or groups of ops.
        assignment: Index into :attr:`listed` of each name, ``int32[M]``.
        listed: Device names, D, not all of which need be used.
        members: Op friendly names behind each name, or ``None`` when the names are the ops.
        properties: See :class:`WholePlan`.
    """

    kind = "split"

    names: tuple[str, ...]
    assignment: IntArray
    listed: tuple[str, ...]
    members: tuple[tuple[str, ...], ...] | None = None
    properties: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, device_of: Mapping[str, str], properties: Mapping[str, str] | None = None) -> SplitPlan:
        """A plan from the device of every op."""
        listed = tuple(dict.fromkeys(device_of.values()))
        position = {device: d for d, device in enumerate(listed)}
        assignment = frozen_array([position[device] for device in device_of.values()], np.int32)
        return cls(tuple(device_of), assignment, listed, properties=properties or {})

    @cached_property
    def device_of(self) -> dict[str, str]:
        """The device of every op."""
        return devices_of_ops(self.listed, self.names, self.assignment, self.members)

    @property
    def name(self) -> str:
        """Like ``GPU + CPU``."""
        return " + ".join(self.devices)

    @property
    def key(self) -> Hashable:  # noqa: D102
        return self.kind, self.listed, self.assignment.tobytes(), tuple(sorted(self.properties.items()))

    @cached_property
    def devices(self) -> tuple[str, ...]:  # noqa: D102
        return tuple(self.listed[d] for d in np.unique(self.assignment).tolist())

    @property
    def fewest_requests(self) -> int:  # noqa: D102
        return len(self.devices)

    def compile(self, compiler: Compiler[_T]) -> _T:  # noqa: D102
        return compiler.compile_split(self)

    def check_fits(self, devices: Collection[str], ops: Collection[str]) -> None:  # noqa: D102
        super().check_fits(devices, ops)
        strange = set(ops).symmetric_difference(self.device_of)
        if strange:
            raise PlacementError(f"it is for other ops, such as {min(strange)!r}")

    def fields(self) -> dict[str, Any]:  # noqa: D102
        return {"device_of": self.device_of, "properties": dict(self.properties)}

    @classmethod
    def read(cls, record: Record) -> SplitPlan:  # noqa: D102
        own = record.record("device_of")
        device_of = {name: device_named(own, name) for name in own.fields}
        if len(set(device_of.values())) < 2:
            raise PlacementError(f"{own.where} must name two devices or more")
        return cls.of(device_of, texts_of(record.record("properties")))


@dataclass(frozen=True, eq=False)
class LanePlan(ModelPlan):
    """L lanes and S submodels that run at once, which needs the package's executor.

    Attributes:
        lanes: The lanes, L.
        submodel_of: Submodel of each op by friendly name. Inputs, outputs, constants and state need none:
            what is said of them is ignored.
        lane_of: Lane of each submodel, S.
        rank: A lane that is free takes, of its ready submodels, the one of the smallest rank, S.
        forms: How the first output of an op is handed over, by friendly name, where that is not as the model
            has it.
    """

    kind = "lanes"

    lanes: tuple[Lane, ...]
    submodel_of: Mapping[str, int]
    lane_of: tuple[int, ...]
    rank: tuple[int, ...]
    forms: Mapping[str, Form] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse what does not fit together."""
        if len(self.rank) != len(self.lane_of):
            raise PlacementError(
                f"a plan gives {len(self.lane_of)} submodels a lane, but {len(self.rank)} a rank"
            )
        wrong = [lane for lane in self.lane_of if not 0 <= lane < len(self.lanes)]
        if wrong:
            raise PlacementError(f"a plan puts a submodel on lane {wrong[0]}; it has {len(self.lanes)} lanes")
        for name, submodel in self.submodel_of.items():
            if not 0 <= submodel < len(self.lane_of):
                raise PlacementError(
                    f"a plan puts op {name!r} into submodel {submodel}; it has {len(self.lane_of)} submodels"
                )

    @cached_property
    def ops(self) -> tuple[tuple[str, ...], ...]:
        """The ops of each submodel, S."""
        found: list[list[str]] = [[] for _ in self.lane_of]
        for name, submodel in self.submodel_of.items():
            found[submodel].append(name)
        return tuple(map(tuple, found))

    @property
    def name(self) -> str:
        """Like ``CPU (2 lanes) + GPU``."""
        count = Counter(lane.device for lane in self.lanes)
        return " + ".join(device if n == 1 else f"{device} ({n} lanes)" for device, n in count.items())

    @cached_property
    def key(self) -> Hashable:  # noqa: D102
        return json.dumps(self.to_json())

    @property
    def devices(self) -> tuple[str, ...]:  # noqa: D102
        return tuple(dict.fromkeys(lane.device for lane in self.lanes))

    @property
    def lane_count(self) -> int:  # noqa: D102
        return len(self.lanes)

    def compile(self, compiler: Compiler[_T]) -> _T:  # noqa: D102
        return compiler.compile_lanes(self)

    def check_fits(self, devices: Collection[str], ops: Collection[str]) -> None:  # noqa: D102
        super().check_fits(devices, ops)
        if unknown := set(self.submodel_of).difference(ops):
            raise PlacementError(f"it is for other ops, such as {min(unknown)!r}")

    def fields(self) -> dict[str, Any]:  # noqa: D102
        return {
            "lanes": [{"device": lane.device, "properties": dict(lane.properties)} for lane in self.lanes],
            "submodels": [
                {"lane": lane, "rank": rank, "ops": list(ops)}
                for lane, rank, ops in zip(self.lane_of, self.rank, self.ops, strict=True)
            ],
            "forms": {name: str(form) for name, form in self.forms.items()},
        }

    @classmethod
    def read(cls, record: Record) -> LanePlan:  # noqa: D102
        lanes = tuple(read_lane(entry) for entry in record.records("lanes", "lane"))
        submodels = list(record.records("submodels", "submodel"))
        submodel_of: dict[str, int] = {}
        for number, entry in enumerate(submodels):
            for name in entry.texts("ops"):
                if name in submodel_of:
                    raise PlacementError(f"{entry.where}: op {name!r} is in another submodel too")
                submodel_of[name] = number
        return cls(
            lanes=lanes,
            submodel_of=submodel_of,
            lane_of=tuple(entry.integer("lane", 0, len(lanes) - 1) for entry in submodels),
            rank=tuple(entry.integer("rank", 0, _MOST) for entry in submodels),
            forms=read_forms(record.record("forms")),
        )


Member: TypeAlias = WholePlan | SplitPlan
"""What one compiled model of a pool runs as."""


@dataclass(frozen=True, eq=False)
class PoolPlan(Plan):
    """How a model is compiled for a rate of requests.

    Attributes:
        title: The name.
        base: The compiled model that the answer is: what ``AsyncInferQueue`` and OpenVINO's own code see.
        members: Where not empty: compiled models beside it, from which the answer's own
            ``create_infer_request`` deals out requests in turns. A model runs one synchronous inference per
            stream, and only a model of its own runs it in the thread that calls.
        requests: How many requests should be in flight, ``OPTIMAL_NUMBER_OF_INFER_REQUESTS``.
        turns: Whose turn it is, as indices into ``members``, over and over; empty = each of them once.
    """

    kind = "pool"

    title: str
    base: Member
    members: tuple[Member, ...] = ()
    requests: int = 1
    turns: tuple[int, ...] = ()

    @property
    def name(self) -> str:  # noqa: D102
        return self.title

    @property
    def key(self) -> Hashable:  # noqa: D102
        members = tuple(member.key for member in self.members)
        return self.kind, self.base.key, members, self.requests, self.order

    @property
    def devices(self) -> tuple[str, ...]:  # noqa: D102
        return tuple(dict.fromkeys(d for member in (self.base, *self.members) for d in member.devices))

    @property
    def is_default(self) -> bool:
        """Whether it is one model under the hints that OpenVINO itself offers for many requests."""
        return not self.members and self.base.properties.get(HINT) in _HINTS

    @property
    def models(self) -> tuple[ModelPlan, ...]:  # noqa: D102
        return self.members or (self.base,)

    @property
    def order(self) -> tuple[int, ...]:
        """Indices into :attr:`models` of the first requests, after which they are repeated."""
        return self.turns or tuple(range(len(self.models)))

    def compile(self, compiler: PoolCompiler[_T]) -> _T:  # noqa: D102
        return compiler.compile_pool(self)

    def check_fits(self, devices: Collection[str], ops: Collection[str]) -> None:  # noqa: D102
        for member in (self.base, *self.members):
            member.check_fits(devices, ops)

    def fields(self) -> dict[str, Any]:  # noqa: D102
        return {
            "name": self.title,
            "requests": self.requests,
            "base": _written(self.base),
            "members": [_written(member) for member in self.members],
            "turns": list(self.turns),
        }

    @classmethod
    def read(cls, record: Record) -> PoolPlan:  # noqa: D102
        members = tuple(map(_member, record.records("members", "member")))
        return cls(
            record.text("name"),
            _member(record.record("base")),
            members,
            record.integer("requests", 1, _MOST_REQUESTS),
            tuple(record.integers("turns", 0, len(members) - 1)),
        )


KINDS: dict[str, type[Plan]] = {kind.kind: kind for kind in (WholePlan, SplitPlan, LanePlan, PoolPlan)}
"""How one model can run, by what JSON calls it."""


def read_plan(data: object, where: str = "a plan", kinds: Mapping[str, type[Plan]] | None = None) -> Plan:
    """Read what :meth:`Plan.to_json` wrote.

    Args:
        data: Parsed JSON.
        where: What holds it, for error sentences.
        kinds: Those that it may be of; ``None`` = :data:`KINDS`.

    Raises:
        PlacementError: It is no plan.
    """
    record = Record.of(data, where, PlacementError)
    record.require_schema(_SCHEMA, _VERSION)
    kind, kinds = record.text("kind"), KINDS if kinds is None else kinds
    if kind not in kinds:
        raise PlacementError(f"{where} is of the kind {shown(kind)}; there are {', '.join(kinds)}")
    return kinds[kind].read(record)


def plan_of_groups(
    devices: tuple[str, ...],
    names: tuple[str, ...],
    assignment: IntArray,
    members: tuple[tuple[str, ...], ...] | None = None,
) -> WholePlan | SplitPlan:
    """How a model runs whose groups of ops are each on one device; the arguments are :class:`SplitPlan`'s."""
    if len(assignment) and (assignment == assignment[0]).all():
        return WholePlan(devices[int(assignment[0])])
    return SplitPlan(names, assignment, devices, members)


def devices_of_ops(
    devices: Sequence[str],
    names: Sequence[str],
    assignment: IntArray,
    members: Sequence[Sequence[str]] | None,
) -> dict[str, str]:
    """Device of every op by friendly name; the arguments are :class:`SplitPlan`'s."""
    chosen = [devices[d] for d in assignment.tolist()]
    if members is None:
        return dict(zip(names, chosen, strict=True))
    return {op: device for ops, device in zip(members, chosen, strict=True) for op in ops}


def _written(member: Member) -> dict[str, Any]:
    return {"kind": member.kind, **member.fields()}


def _member(record: Record) -> Member:
    for kind in (WholePlan, SplitPlan):
        if record.text("kind") == kind.kind:
            return kind.read(record)
    raise PlacementError(f"{record.where} is of the kind {shown(record.text('kind'))}; it is whole or split")


def _width(record: Record) -> Width | None:
    if "width" not in record:
        return None
    try:
        return Width.parse(record.text("width"))
    except DeviceError as cause:
        raise PlacementError(f"{record.where}: {cause}") from cause
