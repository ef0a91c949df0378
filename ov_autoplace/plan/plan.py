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
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeAlias, TypeVar

import numpy as np

from ov_autoplace._base.arrays import IntArray, frozen_array
from ov_autoplace._base.json_fields import Record, read_json, shown
from ov_autoplace._base.text import unknown_name
from ov_autoplace.devices.widths import Width
from ov_autoplace.errors import DeviceError, PlacementError
from ov_autoplace.plan.lane import Form, Lane, device_named, read_forms, read_lane, texts_of

__all__ = [
    "HINT",
    "KINDS",
    "Compiler",
    "JointPlan",
    "LanePlan",
    "Member",
    "ModelPlan",
    "Part",
    "Plan",
    "PoolCompiler",
    "PoolPlan",
    "SplitPlan",
    "WholePlan",
    "plan_of_groups",
    "read_joint_plan",
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


@dataclass(frozen=True, eq=False)
class Part:
    """How one model of several runs.

    Attributes:
        name: What the application calls the model.
        plan: How it runs.
        callers: How many threads begin requests at it, where requests begin.
        digest: Of the model's content.
        source: Where the model's file is; empty where it came from none.
        properties: OpenVINO properties that the application asks for, as text.
        cores: Numbers of the logical processors that are its own where it runs in a process of its own;
            empty = it shares all.
    """

    name: str
    plan: Plan
    callers: int = 1
    digest: str = ""
    source: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)
    cores: tuple[int, ...] = ()

    @property
    def compiled(self) -> Hashable:
        """Equal for models that are compiled alike."""
        return self.plan.key, tuple(sorted(self.properties.items()))

    @property
    def key(self) -> Hashable:
        """Equal for models that run alike."""
        return self.name, self.digest, self.callers, self.cores, self.compiled


@dataclass(frozen=True, eq=False)
class JointPlan(Plan):
    """How several models run on one machine at once.

    Attributes:
        title: The name.
        parts: Of each model, in the order in which they have to be compiled: who reserves cores comes first.
        in_turn: All requests are to run in one thread, one after the other.
        machine: What it was decided for, a line each; see :meth:`check_machine`.
        processors: Numbers of the logical processors that all of them share.
    """

    kind = "joint"

    title: str
    parts: tuple[Part, ...]
    in_turn: bool = False
    machine: tuple[str, ...] = ()
    processors: tuple[int, ...] = ()

    @property
    def name(self) -> str:  # noqa: D102
        return self.title

    @property
    def key(self) -> Hashable:  # noqa: D102
        return self.kind, self.in_turn, tuple(part.key for part in self.parts)

    @property
    def devices(self) -> tuple[str, ...]:  # noqa: D102
        return tuple(dict.fromkeys(device for part in self.parts for device in part.plan.devices))

    @property
    def models(self) -> tuple[ModelPlan, ...]:  # noqa: D102
        return tuple(model for part in self.parts for model in part.plan.models)

    @property
    def is_divided(self) -> bool:  # noqa: D102
        return any(part.plan.is_divided for part in self.parts)

    def part(self, name: str) -> Part:
        """The part of a model.

        Raises:
            PlacementError: There is no model of that name.
        """
        found = {part.name: part for part in self.parts}
        if name not in found:
            raise PlacementError(f"{self.title}: {unknown_name('model', name, found)}")
        return found[name]

    def part_of(self, digest: str) -> Part:
        """The part of the model with that digest.

        Raises:
            PlacementError: There is none, or there are several that run differently.
        """
        found = {part.compiled: part for part in self.parts if part.digest == digest}
        if len(found) > 1:
            names = ", ".join(part.name for part in found.values())
            raise PlacementError(
                f"the plan runs {names} differently, which are the same model; name one of them"
            )
        if not found:
            names = ", ".join(part.name for part in self.parts)
            raise PlacementError(f"the plan is for other models: {names}")
        return next(iter(found.values()))

    def compile(self, compiler: PoolCompiler[_T]) -> _T:
        """Refuse: whoever compiles one model compiles its part."""
        raise PlacementError(f"the plan {self.title} is for several models; compile the part of one")

    def shared(self, processors: frozenset[int]) -> frozenset[int]:
        """The processors that all models share, as a process finds it that may run on some.

        Where these are the ones of a part, it is the process of that part, and the others have the rest.
        """
        is_part = any(processors == frozenset(part.cores) for part in self.parts)
        return frozenset(self.processors) if is_part else processors

    def check_machine(self, here: Sequence[str]) -> None:
        """Refuse it on another machine than the one that it was decided for.

        Args:
            here: What this one is, a line each.

        Raises:
            PlacementError: It is another one.
        """
        lacking = [line for line in self.machine if line not in here]
        if lacking:
            others = [line for line in here if line not in self.machine]
            found = f", not {others[0]!r}" if others else ""
            raise PlacementError(
                f"the plan is for another machine, with {lacking[0]!r}{found}; decide anew here"
            )

    def fields(self) -> dict[str, Any]:  # noqa: D102
        parts = [
            {
                "name": part.name,
                "plan": part.plan.to_json(),
                "callers": part.callers,
                "digest": part.digest,
                "source": part.source,
                "properties": dict(part.properties),
                "cores": list(part.cores),
            }
            for part in self.parts
        ]
        return {
            "name": self.title,
            "in_turn": self.in_turn,
            "machine": list(self.machine),
            "processors": list(self.processors),
            "parts": parts,
        }

    @classmethod
    def read(cls, record: Record) -> JointPlan:  # noqa: D102
        parts = tuple(map(_part, record.records("parts", "part")))
        if not parts:
            raise PlacementError(f"{record.where}: 'parts' holds none")
        names = [part.name for part in parts]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise PlacementError(f"{record.where}: two parts are called {twice!r}")
        return cls(
            record.text("name"),
            parts,
            record.flag("in_turn", False),
            record.texts("machine"),
            tuple(record.integers("processors", 0, _MOST)),
        )


KINDS: dict[str, type[Plan]] = {
    kind.kind: kind for kind in (WholePlan, SplitPlan, LanePlan, PoolPlan, JointPlan)
}
"""By what JSON calls them."""


def read_plan(data: object, where: str = "a plan") -> Plan:
    """Read what :meth:`Plan.to_json` wrote.

    Args:
        data: Parsed JSON.
        where: What holds it, for error sentences.

    Raises:
        PlacementError: It is no plan.
    """
    record = Record.of(data, where, PlacementError)
    record.require_schema(_SCHEMA, _VERSION)
    kind = record.text("kind")
    if kind not in KINDS:
        raise PlacementError(f"{where} is of the kind {shown(kind)}; there are {', '.join(KINDS)}")
    return KINDS[kind].read(record)


def read_joint_plan(path: str | Path) -> JointPlan:
    """The plan of several models in a file.

    Raises:
        PlacementError: It is no such file.
    """
    plan = read_plan(read_json(path, PlacementError, "a plan of several models"), str(path))
    if not isinstance(plan, JointPlan):
        raise PlacementError(f"{path} is the plan of one model")
    return plan


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


def _part(record: Record) -> Part:
    plan = read_plan(record.fields.get("plan"), f"{record.where}: 'plan'")
    if isinstance(plan, JointPlan):
        raise PlacementError(f"{record.where} is several models")
    return Part(
        record.text("name"),
        plan,
        record.integer("callers", 1, _MOST_REQUESTS),
        record.text("digest"),
        record.text("source"),
        texts_of(record.record("properties")),
        tuple(record.integers("cores", 0, _MOST)),
    )


def _width(record: Record) -> Width | None:
    if "width" not in record:
        return None
    try:
        return Width.parse(record.text("width"))
    except DeviceError as cause:
        raise PlacementError(f"{record.where}: {cause}") from cause
