"""Who could be the answer: what people set by hand, and combinations that are predicted to be better.

With all its ``n`` callers and nothing beside it, model m finishes a request every ``s`` seconds and keeps
``u`` cores busy; both are measured. Each request takes ``n s`` then (Little's law). Where all models of a
plan together want more cores than there are, or more of a device than all of it, requests of those that use
it take longer by that factor::

    seconds(m) = n(m) s(m) max over what m uses of max(1, wanted / available)

A model on all threads that are not bound to cores does not wait for those that work for others: its caller
does their share. Beside others it takes no longer than on one thread, and ``1.15`` times that for sharing.

Of rates, the headroom is predicted as the factor with which no core and no device is busy more than all the
time. What running beside others costs beyond that, such as waiting for a thread that works for another model,
is found by the race.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ov_autoplace._base.text import counted
from ov_autoplace.application.bench import UNPINNED, Bench, Model
from ov_autoplace.application.workload import Application
from ov_autoplace.devices.names import property_text
from ov_autoplace.devices.widths import Cores, Width, is_cpu
from ov_autoplace.plan.decision import Candidate, Load
from ov_autoplace.plan.joint import JointPlan, Part
from ov_autoplace.plan.plan import HINT, Plan, WholePlan

__all__ = ["Joint", "fairness", "proposals", "rivals"]

_MOST_COMBINATIONS = 4096
_CORES = "cores of the machine"
_RESERVATION = "ENABLE_CPU_RESERVATION"
_SHARING = 1.15  # measured on two cores, two and three models of 0.02 to 1 ms: 1.05 to 1.25


@dataclass(eq=False)
class Joint(Candidate):
    """A joint plan that is considered.

    Attributes:
        settings: How each model runs, in their order.
        is_reserved: Each has cores of its own, so it needs a process of its own to be tried in.
        is_rival: People set it by hand.
        expected: Predicted seconds of an inference of each model.
        rates: Predicted requests per second of each load, by where they begin.
        likely_headroom: Predicted factor on all rates with which nothing is busy more than all the time.
    """

    settings: tuple[Candidate, ...] = ()
    is_reserved: bool = False
    is_rival: bool = False
    expected: tuple[float, ...] = ()
    rates: Mapping[str, float] = field(default_factory=dict)
    likely_headroom: float = 0.0

    @property
    def joint_plan(self) -> JointPlan:
        """The plan, which is of several models."""
        assert isinstance(self.plan, JointPlan)
        return self.plan

    @property
    def runs_in_turn(self) -> bool:
        """Whether one thread runs all requests."""
        return self.joint_plan.in_turn


def rivals(models: Sequence[Model], cores: int, machine: tuple[str, ...] = ()) -> list[Joint]:
    """What people set by hand: the same for all models, or for each what is best for it alone."""
    here = Cores.of_this_process()
    share = here.share(len(models))
    kinds: list[tuple[str, list[Candidate | None], dict[str, bool]]] = [
        ("OpenVINO's default", _all(models, lambda plan: plan.is_default), {}),
        ("THROUGHPUT", _all(models, _has_hint), {}),
        ("no pinning", _all(models, _is_unpinned), {}),
        ("one thread each", _all(models, _is_narrow), {}),
        ("equal reserved cores", _all(models, lambda plan: _threads(plan) == share), {"is_reserved": True}),
        ("one after the other", _all(models, lambda plan: plan.is_default), {"in_turn": True}),
        ("best hint of each alone", _all(models, lambda plan: plan.is_default or _has_hint(plan)), {}),
        ("best of each alone", [model.alone for model in models], {}),
    ]
    found = []
    for name, settings, how in kinds:
        known = tuple(setting for setting in settings if setting is not None)
        if len(known) == len(models) and not (how.get("is_reserved") and share * len(models) > cores):
            found.append(_joint(name, models, known, machine, here, is_rival=True, **how))
    return _distinct(found)


def proposals(models: Sequence[Model], cores: int, machine: tuple[str, ...] = ()) -> Iterator[Joint]:
    """All combinations of how the models can run; of many models the most promising ways of each."""
    choices, here = [list(model.settings) for model in models], Cores.of_this_process()
    while math.prod(map(len, choices)) > _MOST_COMBINATIONS:
        longest = max(choices, key=len)
        longest.remove(max(longest, key=lambda s: s.median(Load.APPLICATION) * max(s.cores or 0, 0.1)))
    for settings in itertools.product(*choices):
        name = ", ".join(
            f"{model.name}: {label_of(setting.plan, with_device=len(model.machine.devices) > 1)}"
            for model, setting in zip(models, settings, strict=True)
        )
        yield _joint(name, models, settings, machine, here)
        threads = [_threads(setting.plan) for setting in settings]
        if all(threads) and max(threads) > 1 and sum(threads) <= cores:
            yield _joint(f"{name}; reserved", models, settings, machine, here, is_reserved=True)


def predict(joint: Joint, models: Sequence[Model], application: Application, cores: int) -> None:
    """Note in a candidate what its models and all loads are expected to take."""
    wanted: dict[str, float] = {}
    uses: list[dict[str, float]] = []
    for model, setting in zip(models, joint.settings, strict=True):
        own = {device: 1.0 for device in setting.plan.devices if not is_cpu(model.machine.core, device)}
        own[_CORES] = setting.cores or 0.0
        uses.append({what: count for what, count in own.items() if count > 0})
        for what, count in own.items():
            wanted[what] = wanted.get(what, 0.0) + count
    available = {what: float(cores if what == _CORES else 1) for what in wanted}
    alone = [setting.median(Load.APPLICATION) for setting in joint.settings]
    if joint.runs_in_turn:
        joint.expected = tuple(alone)
    else:
        stretch = {what: max(1.0, count / available[what]) for what, count in wanted.items()}
        turns = max(1.0, sum(model.callers for model in models) / cores)
        expected = []
        for model, setting, own in zip(models, joint.settings, uses, strict=True):
            seconds = setting.median(Load.APPLICATION)
            most = seconds * max((stretch[what] for what in own), default=1.0)
            narrow = model.fastest(_is_narrow) if _is_unpinned(setting.plan) else None
            if narrow is not None:
                shared = _SHARING * turns * narrow.median(Load.APPLICATION)
                most = max(seconds, min(most, shared))
            expected.append(most * model.callers)
        joint.expected = tuple(expected)
    names = [model.name for model in models]
    reached = [(demand, application.reached(demand.start)) for demand in application.load]
    seconds_of = dict(zip(names, joint.expected, strict=True))
    chains = {d.start: sum(seconds_of[name] * n for name, n in own.items()) for d, own in reached}
    if joint.runs_in_turn:
        joint.rates = dict.fromkeys(chains, 1 / sum(chains.values()))
    else:
        joint.rates = {d.start: Bench.callers_of(d) / chains[d.start] for d in application.load}
    joint.predicted_seconds = fairness(application, joint.rates)
    busy = dict.fromkeys(available, 0.0)
    for demand, own in reached:
        for name, seconds, use in zip(names, alone, uses, strict=True):
            for what, count in use.items():
                busy[what] += demand.rate * own.get(name, 0.0) * seconds * count
    if application.is_open:
        joint.likely_headroom = min(available[what] / max(n, 1e-12) for what, n in busy.items())
        joint.predicted_seconds = 1 / joint.likely_headroom


def fairness(application: Application, rates: Mapping[str, float]) -> float:
    """Seconds per request, as the weighted geometric mean over the loads: what should be small.

    This is proportional fairness: what one load gains counts as much as what another one gains in the same
    proportion, whether its models are small or large.

    Args:
        application: Says what each load counts.
        rates: Requests per second of each load, by the model at which they begin.
    """
    total = sum(demand.priority for demand in application.load)
    return math.exp(-sum(d.priority * math.log(max(rates[d.start], 1e-12)) for d in application.load) / total)


def label_of(plan: Plan, *, with_device: bool) -> str:
    """How a model runs, for names of plans and tables."""
    one = plan.models[0]
    width = one.width
    if one.lane_count or len(one.devices) > 1:
        return one.name
    label = "default" if width is None else counted(width.threads, "thread")
    if _has_hint(plan):
        label = "THROUGHPUT"
    elif _is_unpinned(plan):
        label = "no pinning"
    elif isinstance(one, WholePlan) and _RESERVATION in one.properties:
        label = counted(int(one.properties["INFERENCE_NUM_THREADS"]), "reserved core")
    if len(plan.models) > 1:
        label = f"{len(plan.models)} x {label}"
    return f"{label} on {plan.devices[0]}" if with_device else label


def _joint(
    name: str,
    models: Sequence[Model],
    settings: Sequence[Candidate],
    machine: tuple[str, ...],
    here: Cores,
    *,
    is_reserved: bool = False,
    in_turn: bool = False,
    is_rival: bool = False,
) -> Joint:
    widths = [_widths(setting.plan) for setting in settings]
    divided = here.divided(widths) if all(widths) else []
    parts = [
        Part(
            model.name,
            _reserved(setting.plan) if is_reserved else setting.plan,
            1 if in_turn else max(1, model.begun),
            model.digest,
            model.source,
            {key: property_text(value) for key, value in model.member.properties.items()},
            divided[i] if divided else (),
        )
        for i, (model, setting) in enumerate(zip(models, settings, strict=True))
    ]
    if is_reserved:  # the widest first
        threads = {model.name: _threads(s.plan) for model, s in zip(models, settings, strict=True)}
        parts.sort(key=lambda part: -threads[part.name])
    plan = JointPlan(name, tuple(parts), in_turn, machine, tuple(sorted(here.processors)))
    own = [setting.memory_bytes for setting in settings]
    memory = sum(known) if len(known := [size for size in own if size is not None]) == len(own) else None
    return Joint(
        name,
        plan,
        memory_bytes=memory,
        settings=tuple(settings),
        is_reserved=is_reserved,
        is_rival=is_rival,
    )


def _reserved(plan: Plan) -> Plan:
    """The same on cores of its own, which OpenVINO takes away from whatever is compiled later."""
    own = {
        "INFERENCE_NUM_THREADS": str(_threads(plan)),
        "NUM_STREAMS": str(len(plan.models)),
        _RESERVATION: "YES",
        "ENABLE_CPU_PINNING": "YES",
    }
    return WholePlan(plan.devices[0], properties=own)


def _distinct(joints: Sequence[Joint]) -> list[Joint]:
    found: dict[Plan, Joint] = {}
    for joint in joints:
        found.setdefault(joint.plan, joint)
    return list(found.values())


def _all(models: Sequence[Model], wanted: Callable[[Plan], bool]) -> list[Candidate | None]:
    return [model.fastest(wanted) for model in models]


def _threads(plan: Plan) -> int:
    """On how many threads of a CPU it runs; 0 where that is up to OpenVINO."""
    return sum(width.threads for width in _widths(plan))


def _is_narrow(plan: Plan) -> bool:
    """Whether each copy runs on one thread."""
    return _threads(plan) == len(plan.models)


def _widths(plan: Plan) -> list[Width]:
    """Of all copies of a model; empty where that is up to OpenVINO."""
    return [model.width for model in plan.models if model.width is not None]


def _has_hint(plan: Plan) -> bool:
    one = plan.models[0]
    return isinstance(one, WholePlan) and HINT in one.properties


def _is_unpinned(plan: Plan) -> bool:
    one = plan.models[0]
    return isinstance(one, WholePlan) and one.properties == UNPINNED
