"""The models of an application, opened to be compiled and timed, alone and at once."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

import openvino as ov

from ov_autoplace._base.budget import Budget
from ov_autoplace.application.workload import Application, Demand, Member
from ov_autoplace.decide.divisions import is_worth_dividing
from ov_autoplace.decide.machine import Machine
from ov_autoplace.decide.options import PlacerOptions
from ov_autoplace.decide.place import place_fitted
from ov_autoplace.decide.widths import possible_widths
from ov_autoplace.decide.workbench import Workbench
from ov_autoplace.devices.models import read_model
from ov_autoplace.devices.widths import Cores, Width, is_cpu
from ov_autoplace.errors import AutoplaceError, DeviceError, ProfilingError
from ov_autoplace.graph.model_hash import model_hash
from ov_autoplace.graph.passes import NAMED, formed
from ov_autoplace.graph.prepare import PreparedModel, prepare
from ov_autoplace.graph.shapes import named_shapes
from ov_autoplace.measure.isolation.interface import Executable, members_of
from ov_autoplace.measure.isolation.profiler import IsolatedProfiler
from ov_autoplace.measure.session import ProfilingSession
from ov_autoplace.measure.workload import Callers, Workload
from ov_autoplace.plan.decision import Candidate, Load
from ov_autoplace.plan.joint import JointPlan
from ov_autoplace.plan.plan import HINT, Plan, PoolPlan, WholePlan

__all__ = ["UNPINNED", "Bench", "Model"]

UNPINNED = {"ENABLE_CPU_PINNING": "NO"}
"""All threads, none of them bound to a core: what people set against models that fight for cores."""

_THROUGHPUT = {HINT: "THROUGHPUT"}
_ALONE_SECONDS, _MOST_CALLERS = 0.03, 8
_SLOWER_WIDER = 1.1  # times as long on more threads: then still more do not make a model faster
_DECISION_SECONDS = 4.0  # of a model alone
_log = logging.getLogger("ov_autoplace")


@dataclass(eq=False)
class Model:
    """One model of an application.

    Attributes:
        member: What the application says of it.
        machine: Its devices.
        prepared: The model in the form that is compiled.
        bench: Compiles it in the process that all plans share.
        digest: Of the model as it was given.
        callers: How many requests may come to it at once.
        begun: How many threads begin requests at it.
        is_closed: Some of them come as soon as those before them have ended.
        settings: How it can run by itself: times of a request alone and how many cores it keeps busy.
    """

    member: Member
    machine: Machine
    prepared: PreparedModel
    bench: Workbench
    digest: str
    callers: int
    begun: int
    is_closed: bool
    settings: list[Candidate] = field(default_factory=list)

    @property
    def name(self) -> str:
        """What the application calls it."""
        return self.member.name

    @property
    def session(self) -> ProfilingSession:
        """Compiles and runs it."""
        return self.bench.session

    def copies(self, setting: Candidate) -> tuple[Executable, ...]:
        """The compiled models of a setting.

        Raises:
            ProfilingError: It cannot be compiled.
        """
        return members_of(self.bench.executable(setting))

    def seconds_alone(self, setting: Candidate) -> float:
        """What a request takes where nothing else runs, which is measured once; infinite where it fails."""
        if not setting.dropped and not len(setting.on(Load.APPLICATION)):
            try:
                workload = Workload(self.session.profiler, (self.copies(setting),))
                outcome = workload.run([Callers(0, self.callers)], _ALONE_SECONDS)
            except ProfilingError as cause:
                setting.dropped = str(cause)
            else:
                setting.remember(Load.APPLICATION, 1 / outcome.rates)
                setting.cores = outcome.cores
        return setting.median(Load.APPLICATION)

    def may_be_faster(self, share: int, candidate: Candidate, others: Sequence[Candidate]) -> bool:
        """Whether a width may be of use: not where the next narrower one took longer than those below it.

        Args:
            share: Threads that are always tried, because people set an equal share of the cores by hand.
            candidate: On one width, or as OpenVINO chooses, which may always be of use.
            others: Those that were tried before, from which the narrower ones are taken.
        """
        width = _width(candidate)
        if width is None or width.threads == share:
            return True
        seconds: dict[int, float] = {}
        for other in others:
            own = _width(other)
            if own and own.threads < width.threads and other.plan.devices == candidate.plan.devices:
                least = seconds.get(own.threads, math.inf)
                seconds[own.threads] = min(self.seconds_alone(other), least)
        *below, last = sorted(seconds) or [0]
        return not below or seconds[last] <= _SLOWER_WIDER * min(seconds[threads] for threads in below)

    @property
    def source(self) -> str:
        """Where its file is; empty where it came from none."""
        return "" if isinstance(self.member.source, ov.Model) else str(Path(self.member.source).resolve())

    @property
    def alone(self) -> Candidate:
        """The setting that is fastest where nothing else runs."""
        return min(self.settings, key=_seconds)

    def fastest(self, wanted: Callable[[Plan], bool]) -> Candidate | None:
        """Of some settings the one that is fastest where nothing else runs."""
        return min((s for s in self.settings if wanted(s.plan)), key=_seconds, default=None)

    def possible_plans(self) -> list[Plan]:
        """How the model could run, OpenVINO's default on each device first."""
        found: list[Plan] = [WholePlan(device) for device in self.machine.devices]
        for device in self.machine.devices:
            if self.machine.chooses_threads(device) or self.machine.wants_rate:
                continue
            found.append(WholePlan(device, properties=_THROUGHPUT))
            if is_cpu(self.machine.core, device):
                found += [WholePlan(device, properties=UNPINNED), *self._narrow(device)]
        return found

    def _narrow(self, device: str) -> list[Plan]:
        """On parts of a CPU, in copies where several requests come at once."""
        found: list[Plan] = []
        cores = Cores.of_this_process().usable
        for width in possible_widths(self.machine, device, self.prepared.model):
            own = WholePlan(device, Width(1, in_caller=True) if width.threads == 1 else width)
            most = min(self.callers, cores // width.threads)
            for count in {most} if self.is_closed else {1, most}:
                name = f"{count} x {own.name}"
                found.append(own if count < 2 else PoolPlan(name, own, (own,) * count, count))
        return found


class Bench:
    """All models of an application; a context manager.

    Models are compiled once for each way to run them, in one child process that all plans share. A plan that
    reserves cores has a process of its own, because reserved cores are lost to whatever else is compiled.

    Args:
        application: The models and what is asked of them.
        core: Where the devices are.
        devices: Those that all may use.
        budget: Of the decision.
        seed: Of inputs.
        isolation: Measure in child processes.

    Attributes:
        models: The models, in their order.
        application: As given.
    """

    def __init__(
        self,
        application: Application,
        core: ov.Core,
        devices: tuple[str, ...],
        *,
        budget: Budget,
        seed: int = 0,
        isolation: bool = True,
    ) -> None:
        self._budget = budget
        self.application, self.core, self.devices = application, core, devices
        self._resources = ExitStack()
        self.models: list[Model] = []
        try:
            for member in application.members.values():
                self.models.append(self._open(member, seed, isolation))
        except BaseException:
            self._resources.close()
            raise

    def __enter__(self) -> Bench:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._resources.close()

    def _open(self, member: Member, seed: int, isolation: bool) -> Model:
        try:
            given = (
                member.source
                if isinstance(member.source, ov.Model)
                else read_model(self.core, Path(member.source))
            )
            options = PlacerOptions(
                shapes=member.shapes,
                calls=member.calls,
                properties=member.properties,
                seed=seed,
                isolation=isolation,
            )
            machine = Machine.of(self.core, member.devices or self.devices, options)
            if others := [device for device in machine.devices if device not in self.devices]:
                raise DeviceError(f"{others[0]!r} is not among the devices of the application")
            prepared = prepare(given, options.shapes)
            for call in options.calls:
                named_shapes(prepared.model, call)
            first = self.models[0].session if self.models else None
            session = self._resources.enter_context(machine.open(prepared, self._budget, first))
        except AutoplaceError as cause:
            raise type(cause)(f"{member.name!r}: {cause}") from cause
        bench = Workbench(session, None, self._budget, seed)
        reaching = [d for d in self.application.load if member.name in self.application.reached(d.start)]
        callers = sum(map(self.callers_of, reaching))
        begun = sum(self.callers_of(demand) for demand in reaching if demand.start == member.name)
        digest, is_closed = model_hash(formed(given, NAMED)), not all(d.is_open for d in reaching)
        return Model(member, machine, prepared, bench, digest, callers, begun, is_closed)

    @staticmethod
    def callers_of(demand: Demand) -> int:
        """How many threads run the requests of a load: those of a rate, as many as can work at once."""
        return min(Cores.of_this_process().usable, _MOST_CALLERS) if demand.is_open else demand.in_flight

    def measure_alone(self) -> None:
        """Compile every way to run each model, and find out what a request takes where nothing else runs.

        Those whose outputs are wrong are left out.

        Raises:
            ProfilingError: A model runs in no way.
        """
        share = Cores.of_this_process().share(len(self.models))
        for model in self.models:
            plans = [*model.possible_plans(), *self._answers(model)]
            candidates = [Candidate(plan.name, plan) for plan in plans]
            tried: list[Candidate] = []
            for candidate in candidates:
                if model.may_be_faster(share, candidate, tried):
                    model.bench.note_memory(candidate)
                    tried.append(candidate)
            entered = model.bench.enter(tried, lambda *_: True)
            model.settings = [setting for setting in entered if math.isfinite(model.seconds_alone(setting))]
            if not model.settings:
                raise ProfilingError(f"{model.name!r} cannot be run: {candidates[0].dropped}")

    def _answers(self, model: Model) -> list[Plan]:
        """What AUTOPLACE decides for a model alone, where that can be lanes or a mix of devices.

        Lanes need cores that no other request keeps busy.
        """
        machine = model.machine
        if len(machine.devices) == 1:
            device = machine.devices[0]
            if sum(map(self.callers_of, self.application.load)) >= Cores.of_this_process().usable:
                return []
            if not is_cpu(self.core, device) or not is_worth_dividing(machine, device, model.prepared.model):
                return []
        if not self._budget.allows(_DECISION_SECONDS):
            return []
        try:
            plan = place_fitted(machine, model.prepared.model)[0].plan
        except AutoplaceError as cause:
            _log.info("%s is not decided alone: %s", model.name, cause)
            return []
        return [plan] if plan.lane_count or len(plan.devices) > 1 else []

    def compile(self, plan: JointPlan, settings: Sequence[Candidate] | None) -> Workload:
        """All models of a plan.

        Args:
            plan: The plan.
            settings: How each model runs, in their order, compiled for all plans in one process; ``None`` =
                in a process of its own, in the plan's order.

        Raises:
            ProfilingError: One of them cannot be compiled.
        """
        numbers = {model.name: i for i, model in enumerate(self.models)}
        links = tuple((numbers[c.source], numbers[c.target], c.times) for c in self.application.chains)
        if settings is not None:
            copies = [model.copies(own) for model, own in zip(self.models, settings, strict=True)]
            return Workload(self.models[0].session.profiler, tuple(copies), links, plan.in_turn)
        profiler = self.models[0].session.profiler
        if not isinstance(profiler, IsolatedProfiler) or (other := profiler.another()) is None:
            raise ProfilingError("cores can be reserved in a further process only; none can be started")
        self._resources.callback(other.close)
        compiled = {
            part.name: members_of(part.plan.compile(self.models[numbers[part.name]].session.within(other)))
            for part in plan.parts
        }
        return Workload(other, tuple(compiled[model.name] for model in self.models), links, plan.in_turn)

    def compile_seconds(self, settings: Sequence[Candidate]) -> float:
        """What compiling all models takes, each as its setting says."""
        return sum(model.bench.compile_seconds(own) for model, own in zip(self.models, settings, strict=True))

    def callers(self, plan: JointPlan, seconds: float, factor: float, seed: int) -> list[Callers]:
        """Who calls the models of a plan, as the load says, in its order.

        Args:
            plan: Says how many threads begin requests.
            seconds: How long requests come.
            factor: Times their rates.
            seed: Of arrivals at random.
        """
        numbers = {model.name: i for i, model in enumerate(self.models)}

        def of(demand: Demand) -> Callers:
            arrivals = demand.begins(seconds, factor, seed) if demand.is_open else None
            return Callers(numbers[demand.start], plan.part(demand.start).callers, arrivals)

        return [of(demand) for demand in self.application.load]


def _width(setting: Candidate) -> Width | None:
    """Of each copy; ``None`` where OpenVINO chooses it."""
    return setting.plan.models[0].width


def _seconds(setting: Candidate) -> float:
    return setting.median(Load.APPLICATION)
