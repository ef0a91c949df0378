"""Models of an application that are only played: what each takes alone is what a test says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import openvino as ov
from openvino import opset13 as ops

from ov_autoplace.application.bench import Bench, Model
from ov_autoplace.application.candidates import label_of
from ov_autoplace.application.workload import Application
from ov_autoplace.decide.machine import Machine
from ov_autoplace.decide.options import PlacerOptions
from ov_autoplace.plan.decision import Candidate, Load
from ov_autoplace.plan.plan import Plan

__all__ = ["Alone", "application", "played", "setting"]

Alone = Mapping[str, tuple[float, float]]
"""Seconds of a request and cores that are busy, by what :func:`label_of` calls a plan."""


def relu() -> ov.Model:
    x = ops.parameter([1, 4], np.float32, name="x")
    return ov.Model([ops.result(ops.relu(x))], [x])


def application(names: Sequence[str] = ("a", "b"), **more: Any) -> Application:
    return Application({name: f"{name}.xml" for name in names}, **more)


def setting(plan: Plan, seconds: float, cores: float) -> Candidate:
    """How a model runs alone."""
    return Candidate(plan.name, plan, times={Load.APPLICATION: np.full(3, seconds)}, cores=cores)


def played(given: Application, alone: Alone, devices: Sequence[str] = ("CPU",)) -> list[Model]:
    """The models of an application, each with all the plans that are possible for it here.

    Args:
        given: The application.
        alone: What each plan takes; those that are not in it, a millisecond on one core.
        devices: Of the machine; ``XCPU`` is another processor.
    """
    machine = Machine(ov.Core(), tuple(devices), PlacerOptions())
    models = []
    for member in given.members.values():
        reaching = [d for d in given.load if member.name in given.reached(d.start)]
        callers = sum(map(Bench.callers_of, reaching))
        begun = sum(Bench.callers_of(d) for d in reaching if d.start == member.name)
        prepared = cast("Any", SimpleNamespace(model=relu()))
        is_closed = not all(d.is_open for d in reaching)
        bench = cast("Any", SimpleNamespace())
        model = Model(member, machine, prepared, bench, f"hash of {member.name}", callers, begun, is_closed)
        model.settings = [
            setting(plan, *alone.get(label_of(plan, with_device=len(devices) > 1), (1e-3, 1.0)))
            for plan in model.possible_plans()
        ]
        models.append(model)
    return models
