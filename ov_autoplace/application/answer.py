"""The answer for an application: a plan for each model, how it was decided, and its way into programs."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import openvino as ov

from ov_autoplace._base.files import write_text_atomically
from ov_autoplace.application.candidates import Joint
from ov_autoplace.application.race import Result
from ov_autoplace.application.workload import Application
from ov_autoplace.devices.conditions import machine_lines
from ov_autoplace.devices.extra_devices import own_core
from ov_autoplace.devices.models import read_model
from ov_autoplace.devices.widths import Cores, confining_width
from ov_autoplace.errors import PlacementError
from ov_autoplace.plan.decision import Decision
from ov_autoplace.plan.joint import JointPlan, read_joint_plan
from ov_autoplace.plan.plan import WholePlan
from ov_autoplace.plugin.device import compile_part

__all__ = ["ApplicationPlan"]


@dataclass(frozen=True, eq=False)
class ApplicationPlan:
    """How each model of an application runs.

    Attributes:
        plan: The plan of all of them.
        models: The models that were given as such, by name; the others are where ``plan`` says.
        application: What was asked; ``None`` for a plan from a file.
        decision: How it was chosen; ``None`` for a plan from a file.
        results: What each plan did that was run, by its name.
    """

    plan: JointPlan
    models: Mapping[str, ov.Model] = field(default_factory=dict)
    application: Application | None = None
    decision: Decision | None = None
    results: Mapping[str, Result] = field(default_factory=dict)

    @classmethod
    def of(
        cls, application: Application, decision: Decision, results: Mapping[Joint, Result]
    ) -> ApplicationPlan:
        """The answer of a decision."""
        plan = decision.winner.plan
        assert isinstance(plan, JointPlan)
        given = {n: m.source for n, m in application.members.items() if isinstance(m.source, ov.Model)}
        by_name = {joint.name: result for joint, result in results.items()}
        return cls(plan, given, application, decision, by_name)

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], models: Mapping[str, ov.Model] | None = None
    ) -> ApplicationPlan:
        """The plan in a file.

        Args:
            path: What :meth:`save` wrote.
            models: Those that came from no file, by name.

        Raises:
            PlacementError: It is no such file.
        """
        return cls(read_joint_plan(Path(path)), dict(models or {}))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the plan as JSON, in place of what is there.

        Raises:
            OutputError: It cannot be written.
        """
        write_text_atomically(Path(path), json.dumps(self.plan.to_json(), indent=1) + "\n")

    def properties(self, name: str) -> tuple[str, dict[str, str]]:
        """The device of a model and the OpenVINO properties that make any program run it so.

        Copies of a model are streams of the one that a program compiles.

        Raises:
            PlacementError: There is no such model, or it runs in a way that properties cannot say.
        """
        part = self.plan.part(name)
        one, *others = part.plan.models
        if not isinstance(one, WholePlan) or any(other != one for other in others):
            raise PlacementError(
                f"{name!r} runs as {part.plan.name}, which no properties say; compile it with this plan"
            )
        own = one.all_properties
        if one.width is not None and others:
            count = len(part.plan.models)
            threads = {"INFERENCE_NUM_THREADS": str(count * one.width.threads), "NUM_STREAMS": str(count)}
            own |= {**threads, "ENABLE_CPU_PINNING": "NO"}
        return one.device, {**part.properties, **own}

    def confine(self, name: str) -> None:
        """Keep this process, and the programs that it starts, on the processors of one model.

        Several processes that load the same plan so leave each other alone. Call it in the main thread before
        anything asks OpenVINO for a device, which is when it looks, once, at the processors that it may use.

        Raises:
            PlacementError: There is no such model, it has no processors of its own, these are not this
                process's, OpenVINO already uses others, or the plan is for another machine.
        """
        part = self.plan.part(name)
        if not part.cores:
            raise PlacementError(
                f"{name!r} has no cores of its own in the plan {self.plan.name}, whose models share them; "
                "decide for processes (--processes)"
            )
        here = Cores.of_this_process().processors
        if lacking := sorted(set(part.cores) - here):
            raise PlacementError(
                f"{name!r} runs on processor {lacking[0]}, which this process may not use; "
                f"it has {', '.join(map(str, sorted(here)))}"
            )
        shared = Cores(self.plan.shared(here))
        os.sched_setaffinity(0, part.cores)  # before OpenVINO is asked what it is
        try:
            self.plan.check_machine(machine_lines(own_core(), self.plan.devices, shared))
            if confining_width() is not None:
                raise PlacementError(
                    f"OpenVINO already uses other processors than those of {name!r}; "
                    "keep the process on them before it is asked for a device"
                )
        except BaseException:
            os.sched_setaffinity(0, here)
            raise

    def compile(self, core: ov.Core | None = None) -> dict[str, ov.CompiledModel]:
        """All models, compiled once each in the plan's order.

        Args:
            core: Where the devices are; ``None`` means a new one.

        Raises:
            PlacementError: The plan is for another machine, or for another model than is there now.
        """
        core = core or ov.Core()
        self.plan.check_machine(machine_lines(core, self.plan.devices))
        found: dict[str, ov.CompiledModel] = {}
        for part in self.plan.parts:
            model = self.models.get(part.name)
            if model is None:
                if not part.source:
                    raise PlacementError(f"the plan does not say where {part.name!r} is; give the model")
                model = read_model(core, Path(part.source))
            found[part.name] = compile_part(core, model, part)
        return found
