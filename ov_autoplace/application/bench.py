"""The models of an application, opened to be compiled and timed, alone and at once."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

import openvino as ov

from ov_autoplace.application.workload import Application, Demand, Member
from ov_autoplace.decide.machine import Machine
from ov_autoplace.decide.options import PlacerOptions
from ov_autoplace.decide.widths import possible_widths
from ov_autoplace.devices.models import read_model
from ov_autoplace.devices.widths import Cores, Width, is_cpu
from ov_autoplace.errors import AutoplaceError, DeviceError, ProfilingError
from ov_autoplace.graph.model_hash import model_hash
from ov_autoplace.graph.passes import NAMED, formed
from ov_autoplace.graph.prepare import PreparedModel, prepare
from ov_autoplace.measure.isolation.interface import Executable, Pool
from ov_autoplace.measure.isolation.profiler import IsolatedProfiler
from ov_autoplace.measure.session import ProfilingSession
from ov_autoplace.measure.workload import Callers, Workload
from ov_autoplace.plan.decision import Candidate, Load
from ov_autoplace.plan.plan import HINT, JointPlan, Plan, PoolPlan, WholePlan

__all__ = ["UNPINNED", "Bench", "Model"]

UNPINNED = {"ENABLE_CPU_PINNING": "NO"}
"""All threads, none of them bound to a core: what people set against models that fight for cores."""

_THROUGHPUT = {HINT: "THROUGHPUT"}
_ALONE_SECONDS, _ALONE_RUNS = 0.03, 2


@dataclass(eq=False)
class Model:
    """One model of an application.

    Attributes:
        member: What the application says of it.
        machine: Its devices.
        prepared: The model in the form that is compiled.
        session: Compiles it.
        digest: Of the model as it was given.
        callers: How many requests come to it at once.
        settings: How it can run by itself: times of a request alone and how many cores it keeps busy.
    """

    member: Member
    machine: Machine
    prepared: PreparedModel
    session: ProfilingSession
    digest: str
    callers: int
    settings: list[Candidate] = field(default_factory=list)

    @property
    def name(self) -> str:
        """What the application calls it."""
        return self.member.name

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
            count = min(self.callers, cores // width.threads)
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
        seed: Of inputs and arrivals.
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
        seed: int = 0,
        isolation: bool = True,
    ) -> None:
        self.application, self.core, self.devices = application, core, devices
        self._resources = ExitStack()
        self._compiled: dict[tuple[int, int, Plan], tuple[Executable, ...]] = {}
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
        self._compiled.clear()
        self._resources.close()

    def _open(self, member: Member, seed: int, isolation: bool) -> Model:
        try:
            given = (
                member.source
                if isinstance(member.source, ov.Model)
                else read_model(self.core, Path(member.source))
            )
            options = PlacerOptions(
                shapes=member.shapes, properties=member.properties, seed=seed, isolation=isolation
            )
            machine = Machine.of(self.core, member.devices or self.devices, options)
            if others := [device for device in machine.devices if device not in self.devices]:
                raise DeviceError(f"{others[0]!r} is not among the devices of the application")
            prepared = prepare(given, member.shapes)
            first = self.models[0].session if self.models else None
            session = self._resources.enter_context(machine.open(prepared, beside=first))
        except AutoplaceError as cause:
            raise type(cause)(f"{member.name!r}: {cause}") from cause
        return Model(
            member, machine, prepared, session, model_hash(formed(given, NAMED)), self._callers(member.name)
        )

    def _callers(self, name: str) -> int:
        """How many requests come to a model at once, at most."""
        reaching = [d for d in self.application.load if name in self.application.reached(d.start)]
        return sum(demand.in_flight for demand in reaching)

    def measure_alone(self) -> None:
        """Compile every way to run each model, and find out what a request takes where nothing else runs.

        Raises:
            ProfilingError: A model runs in no way.
        """
        for i, model in enumerate(self.models):
            failures = []
            for plan in model.possible_plans():
                try:
                    workload = Workload(model.session.profiler, (self._copies(i, model.session, plan),))
                    outcome = workload.run([Callers(0, model.callers)], _ALONE_SECONDS)
                except ProfilingError as cause:
                    failures.append(cause)
                    continue
                times = {Load.APPLICATION: 1 / outcome.rates}
                model.settings.append(Candidate(plan.name, plan, times=times, cores=outcome.cores))
            if not model.settings:
                raise ProfilingError(f"{model.name!r} cannot be run: {failures[0]}") from failures[0]

    def compile(self, plan: JointPlan, *, apart: bool = False) -> Workload:
        """All models of a plan, compiled in its order where they were not yet.

        Args:
            plan: The plan.
            apart: In a process of its own.

        Raises:
            ProfilingError: One of them cannot be compiled.
        """
        profiler = self.models[0].session.profiler
        if apart:
            if not isinstance(profiler, IsolatedProfiler) or (other := profiler.another()) is None:
                raise ProfilingError(
                    "cores can be reserved in a further process only, and none can be started"
                )
            profiler = other
            self._resources.callback(other.close)
        numbers = {model.name: i for i, model in enumerate(self.models)}
        copies: dict[int, tuple[Executable, ...]] = {}
        for part in plan.parts:
            i = numbers[part.name]
            session = self.models[i].session.within(profiler) if apart else self.models[i].session
            copies[i] = self._copies(i, session, part.plan)
        links = tuple((numbers[c.source], numbers[c.target], c.times) for c in self.application.chains)
        return Workload(profiler, tuple(copies[i] for i in range(len(numbers))), links, plan.in_turn)

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

    def _copies(self, model: int, session: ProfilingSession, plan: Plan) -> tuple[Executable, ...]:
        key = (model, id(session.profiler), plan)
        if key not in self._compiled:
            found = plan.compile(session)
            self._compiled[key] = found.members if isinstance(found, Pool) else (found,)
        return self._compiled[key]


def _seconds(setting: Candidate) -> float:
    return setting.median(Load.APPLICATION)
