"""The plan of an application: how each of several models is to be run on one machine."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from ov_autoplace._base.json_fields import Record, read_json
from ov_autoplace._base.text import unknown_name
from ov_autoplace.errors import PlacementError
from ov_autoplace.plan.lane import texts_of
from ov_autoplace.plan.plan import KINDS, ModelPlan, Plan, PoolCompiler, read_plan

__all__ = ["EVERY_KIND", "JointPlan", "Part", "read_joint_plan"]

_T = TypeVar("_T")
_MOST, _MOST_CALLERS = 2**31 - 1, 1_000_000


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


EVERY_KIND: dict[str, type[Plan]] = {**KINDS, JointPlan.kind: JointPlan}
"""How one model or several can run, by what JSON calls it."""


def read_joint_plan(path: str | Path) -> JointPlan:
    """The plan of several models in a file.

    Raises:
        PlacementError: It is no such file.
    """
    plan = read_plan(read_json(path, PlacementError, "a plan of several models"), str(path), EVERY_KIND)
    if not isinstance(plan, JointPlan):
        raise PlacementError(f"{path} is the plan of one model")
    return plan


def _part(record: Record) -> Part:
    plan = read_plan(record.fields.get("plan"), f"{record.where}: 'plan'")
    return Part(
        record.text("name"),
        plan,
        record.integer("callers", 1, _MOST_CALLERS),
        record.text("digest"),
        record.text("source"),
        texts_of(record.record("properties")),
        tuple(record.integers("cores", 0, _MOST)),
    )
