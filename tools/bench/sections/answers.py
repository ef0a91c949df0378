"""AUTOPLACE's answers beside what they replace: what each of these sections measures is a :class:`Contest`.

Each network is placed as a user's would be, in a process of its own. Its answers and what a user could have
instead are then compiled several times each and run in turns (``harness/race.py``), under one load after the
other. Ratios are medians of paired ratios, from the same rounds, over the best rival, which is the one with
the lowest median in the race itself; an answer that is that very rival is measured like any other, so that
its ratio shows the noise.

* ``latency-alias``: the CPU plugin twice, XCPU on one thread beside CPU on two; three modes, AUTO and default
  HETERO beside each device alone. Whether an answer is ever slower than the best device is asked of all
  models by ``--with models=all ours=profile``.
* ``latency-gpu``: the same on OpenVINO's GPU plugin beside the CPU's; a virtual GPU's convolutions are very
  slow, so there transformers are the realistic case.
* ``mixes``: networks out of publications that hold op types of both sorts, where a mix of both can be faster.
* ``width``: ``AUTOPLACE:CPU`` over plain ``CPU``, back to back and once after each pause of 3 ms.
* ``overlap``: networks that branch, on lanes that work at once, over the best width; ``lanes`` is the best
  schedule whether or not it wins.
* ``rate``: under ``PERFORMANCE_HINT=THROUGHPUT``, over the best of OpenVINO's own hints for a rate, called by
  as many threads as the compiled model asks for and through a queue, from C++.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import product
from typing import Any

import numpy as np

import ov_autoplace
from harness.environment import PAIRS, core_of
from harness.process import Pieces
from harness.race import (
    Load,
    Race,
    know_transfers,
    race,
    session_of,
)
from harness.result import (
    Case,
    Claim,
    Point,
    Ratio,
    Result,
    Table,
    interval_cell,
    measured_ratio,
    milliseconds,
)
from ov_autoplace._base.statistics import Interval, median_interval
from ov_autoplace.decide.machine import Machine
from ov_autoplace.decide.widths import widths_for
from ov_autoplace.errors import AutoplaceError
from ov_autoplace.graph.passes import NAMED, formed, static_shapes
from ov_autoplace.measure.session import ProfilingSession
from ov_autoplace.plan.placement import Placement
from ov_autoplace.plan.plan import Plan, PoolPlan, WholePlan
from problems.models import SETS, chosen

_MODES = {"profile": "PROFILE", "zero-shot": "ZERO_SHOT", "tune": "TUNE"}
_TUNE_MS = {True: 5_000.0, False: 15_000.0}
_TIMEOUT = {True: 180.0, False: 420.0}  # of a network
_SHARE_IF_QUICK = 0.4  # of the seconds
_MOST = 1.02  # slower than this is a loss that counts
_SLOWER_SHARE = 0.05  # of the networks, at most, as the documents say
_ALL = "all"  # bands together
# Seconds below which a network belongs to a band.
_BANDS = ((60e-6, "below 60 us"), (200e-6, "60 to 200 us"), (1e-3, "0.2 to 1 ms"), (np.inf, "above"))
_THROUGHPUT = {"PERFORMANCE_HINT": "THROUGHPUT"}
# AUTO would run on the CPU until its first choice is compiled: what is compared is what comes after.
_STARTED = {"ENABLE_STARTUP_FALLBACK": "NO"}


@dataclass(frozen=True)
class Contest:
    """What a section compares.

    Attributes:
        title: As a heading.
        pair: Of devices, a key of :data:`PAIRS`.
        models: A key of :data:`SETS`.
        quick: Names of a short run.
        ours: Arguments of ``place`` by the name of the answer.
        rivals: ``devices``, ``widths`` (devices on each number of threads) or ``hints``.
        loads: How requests arrive; ratios for the gate are of the first.
        beside: Virtual devices that get all devices and take part besides.
        seconds: Of each race.
        claimed: What the geometric mean of the first answer is at most, as the documents say, by band.
        measured: Which share of the networks has to be measured at most, as the documents say.
        listed: Whether the page of results has a row for each network.
        whole: Seconds of a whole run, after which no network is begun.
    """

    title: str
    pair: str
    models: str
    quick: tuple[str, ...]
    ours: Mapping[str, Mapping[str, Any]]
    rivals: str
    loads: tuple[Load, ...] = (Load.STEADY,)
    beside: tuple[str, ...] = ()
    seconds: float = 3.0
    claimed: Mapping[str, float] = field(default_factory=dict)
    measured: float | None = None
    whole: float = float("inf")
    listed: bool = False

    @property
    def first(self) -> str:
        """The answer that claims and the picture are about."""
        return next(iter(self.ours))


_BY_MODE = {name: {"mode": mode} for name, mode in _MODES.items()}
_LATENCY = {"rivals": "devices", "beside": ("AUTO", "HETERO"), "seconds": 8.0, "whole": 2100.0}
CONTESTS = {
    "latency-alias": Contest(
        "Real latency on the CPU plugin twice (XCPU on one thread, CPU on two)",
        "alias",
        "few",
        ("light/squeezenet", "zoo/mobilenet_v2", "zoo/bert_base", "zoo/inception_v3"),
        _BY_MODE,
        claimed={_ALL: 1.01},
        **_LATENCY,
    ),
    "latency-gpu": Contest(
        "Real latency on GPU and CPU",
        "gpu",
        "gpu",
        ("bert 2x128, 32 tokens", "bert 4x256, 32 tokens"),
        _BY_MODE,
        **_LATENCY,
    ),
    "mixes": Contest(
        "Networks whose op types suit GPU or CPU",
        "gpu",
        "of both sorts",
        ("radiance_field",),
        {name: _BY_MODE[name] for name in ("profile", "tune")},
        claimed={_ALL: 0.9},
        listed=True,
        **_LATENCY,
    ),
    "width": Contest(
        "The width of the CPU",
        "cpu",
        "usual",
        ("zoo/lstm_lm", "zoo/mobilenet_v2", "zoo/unet", "light/squeezenet"),
        {"answer": {}, "zero-shot": {"mode": "ZERO_SHOT"}},
        "devices",
        (Load.STEADY, Load.PAUSED),
        claimed=dict(zip((band for _, band in _BANDS), (0.75, 0.90, 0.95, 1.01), strict=True)),
        measured=0.5,
    ),
    "overlap": Contest(
        "Lanes that work at once",
        "cpu",
        "branching",
        ("two towers/16x512", "siamese/105", "bidirectional LSTM/64", "speech decoder/1 token"),
        {"answer": {}, "lanes": {"executor": "OVERLAP"}},
        "widths",
        (Load.STEADY, Load.PAUSED),
        claimed={_ALL: 0.95},
    ),
    "rate": Contest(
        "A rate of requests",
        "cpu",
        "few",
        ("tiny/anomaly_detection", "zoo/lstm_lm", "zoo/unet"),
        {"answer": {"properties": _THROUGHPUT}},
        "hints",
        (Load.WAITING, Load.QUEUED),
        claimed={_ALL: 0.95},
    ),
}


@dataclass(frozen=True, slots=True)
class Answer:
    """A placement of AUTOPLACE's.

    Attributes:
        plan: Its name.
        devices: Those that it uses.
        predicted: Seconds by the cost table; NaN where it does not say.
        decision_seconds: That finding it took.
        reason: In a sentence.
        was_measured: Whether anything was run to find it.
    """

    plan: str
    devices: tuple[str, ...]
    predicted: float
    decision_seconds: float
    reason: str
    was_measured: bool


@dataclass(frozen=True, eq=False)
class Found:
    """One network: its answers, the names of its rivals, and the race."""

    answers: Mapping[str, Answer]
    rivals: Sequence[str]
    race: Race

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Found:
        """What :func:`decide_and_race` gave."""
        answers = {name: Answer(**answer) for name, answer in fields["answers"].items()}
        return cls(answers, fields["rivals"], Race.from_dict(fields["race"]))

    def best(self, load: Load) -> str:
        """The best rival under a load."""
        return self.race.best(self.rivals, load)

    def ratios(self, load: Load) -> dict[str, Interval]:
        """Of each answer that ran over the best rival."""
        return {
            name: self.race.ratio(name, self.best(load), load)
            for name in self.answers
            if name in self.race.samples[load] and self.best(load)
        }

    def band(self, load: Load) -> str:
        """Of the shortest median of all."""
        shortest = min(float(np.median(samples)) for samples in self.race.samples[load].values())
        return next(band for limit, band in _BANDS if shortest < limit)


def run(
    quick: bool,
    seed: int,
    contest: str = "width",
    models: tuple[str, ...] = (),
    ours: tuple[str, ...] = (),
    groups: int = 0,
    group: int = 0,
) -> Result:
    """All networks of a contest.

    Args:
        quick: Few networks and short races.
        seed: Of placing and of the order in each round.
        contest: A key of :data:`CONTESTS`.
        models: Parts of their names, or ``all``; a choice where empty.
        ours: Which answers; all when empty.
        groups: Into how many parts the networks are divided, for a machine that is idle for short times only.
        group: Which of the parts to run, from 0.
    """
    told = CONTESTS[contest]
    pieces = Pieces(_TIMEOUT[quick], float("inf") if models else told.whole)
    if len(PAIRS[told.pair]) > 1:
        pieces("transfers", know_transfers, pair=told.pair)
    names = ours or tuple(told.ours)
    found = {}
    for name in chosen(told.models, told.quick if quick else None, models, groups, group):
        what = {"contest": contest, "name": name, "ours": names, "quick": quick, "seed": seed}
        has_widths = told.rivals == "widths"
        fields = pieces(f"{name} beside its widths" if has_widths else name, decide_and_race, **what)
        if fields is None and has_widths:
            # OpenVINO crashes on one thread with some networks, here without the decision's child process.
            fields = pieces(f"{name} beside no widths", decide_and_race, **what, widths=False)
        if fields is not None:
            found[name] = Found.from_dict(fields)
    return result_of(told, found, seed, pieces.remarks)


def decide_and_race(
    contest: str, name: str, ours: Sequence[str], quick: bool, seed: int, widths: bool = True
) -> dict[str, Any]:
    """Place one network, and race its answers with their rivals; a :class:`Found` for JSON."""
    told = CONTESTS[contest]
    core, devices = core_of(told.pair), PAIRS[told.pair]
    given = SETS["usual" if told.models == "few" else told.models][name]()
    model = formed(given, (static_shapes(), *NAMED))
    answers, plans, failures = {}, {}, {}
    for who in ours:
        options = dict(told.ours[who])
        if options.get("mode") == "TUNE":
            options["time_budget_ms"] = _TUNE_MS[quick]
        start = time.perf_counter()
        try:
            placement = ov_autoplace.place(model, devices, core=core, seed=seed, **options)
        except AutoplaceError as cause:
            failures[who] = str(cause)
            continue
        answers[who] = _answer(placement, time.perf_counter() - start)
        plans[who] = placement.plan
    seconds = told.seconds * (_SHARE_IF_QUICK if quick else 1)
    with session_of(core, model, devices, seed) as session:
        rivals = _rivals(told.rivals if widths else "devices", Machine(core, devices), session)
        beside = {
            who: WholePlan(f"{who}:{','.join(devices)}", properties=_STARTED if who == "AUTO" else {})
            for who in told.beside
        }
        raced = race(session, {**rivals, **beside, **plans}, seconds, seed, told.loads)
    fields = raced.to_dict()
    fields["failures"] |= failures
    return {"answers": {who: asdict(a) for who, a in answers.items()}, "rivals": list(rivals), "race": fields}


def _rivals(kind: str, machine: Machine, session: ProfilingSession) -> dict[str, Plan]:
    devices = machine.devices
    if kind == "hints":
        cumulative = {"PERFORMANCE_HINT": "CUMULATIVE_THROUGHPUT", **_STARTED}
        hints = {device: WholePlan(device, properties=_THROUGHPUT) for device in devices}
        hints["AUTO"] = WholePlan(f"AUTO:{','.join(devices)}", properties=cumulative)
        return {who: PoolPlan(who, plan) for who, plan in hints.items()}
    alone = [WholePlan(device) for device in devices]
    if kind == "widths":
        alone += [WholePlan(d, width) for d in devices for width in widths_for(machine, d, session.model)]
    return {plan.name: plan for plan in alone}


def _answer(placement: Placement, seconds: float) -> Answer:
    predicted = placement.latency_seconds
    plan = placement.plan
    return Answer(
        plan.name,
        tuple(plan.devices),
        np.nan if predicted is None else float(predicted),
        seconds,
        str(placement.decision),
        any(len(candidate.samples) for candidate in placement.decision.candidates),
    )


def result_of(told: Contest, found: Mapping[str, Found], seed: int, failures: Sequence[str]) -> Result:
    """What was found of all networks, as a section shows it."""
    losses, slower = _losses(told, found)
    remarks = [*failures, *losses, *_noise_floor(found), *_missing(found)]
    first = told.loads[0]
    band_table, claims = _bands(told, found)
    decided = [one.answers[told.first] for one in found.values() if told.first in one.answers]
    if told.measured is not None and decided:
        share = float(np.mean([answer.was_measured for answer in decided]))
        claims.append(Claim("share of networks that had to be measured", told.measured, share))
    ratios: list[Ratio] = [
        measured_ratio(
            f"{name}: {who} over the best {told.rivals[:-1]}", ratio, len(one.race.samples[first][who])
        )
        for name, one in found.items()
        for who, ratio in one.ratios(first).items()
    ]
    medians = [_medians(load, found) for load in told.loads]
    tables = [band_table, _ratio_table(told, found), *medians] if found else []
    data = {
        name: {"answers": {who: asdict(a) for who, a in one.answers.items()}, "race": one.race.to_dict()}
        for name, one in found.items()
    }
    return Result(
        told.title,
        tuple(tables),
        tuple(ratios),
        tuple(case for name, one in found.items() for case in _cases(told, name, one)),
        tuple(remarks),
        {"seed": seed, "networks": data},
        (*claims, *slower),
        tuple(_points(told, found)),
    )


def _medians(load: Load, found: Mapping[str, Found]) -> Table:
    """Milliseconds of everybody under a load."""
    columns = list(dict.fromkeys(who for one in found.values() for who in one.race.samples[load]))
    rows = []
    for name, one in found.items():
        samples = one.race.samples[load]
        cells = [milliseconds(samples[who]) if who in samples else "-" for who in columns]
        rows.append((name, *cells, one.race.runs))
    return Table(
        f"Milliseconds per request, {load.value}: median [95 % interval]",
        ("network", *columns, "rounds x copies"),
        rows,
        "A sample of a round is the mean over all copies.",
        published=False,
    )


def _ratio_table(told: Contest, found: Mapping[str, Found]) -> Table:
    """The first answer over the best rival under each load, and what it is."""
    rows = []
    for name, one in found.items():
        cells = [one.best(load) for load in told.loads]
        for load in told.loads:
            ratios = one.ratios(load)
            cells.append(interval_cell(ratios[told.first]) if told.first in ratios else "-")
        answer = one.answers.get(told.first)
        rows.append((name, *cells, answer.plan if answer else "-"))
    best = [f"best, {load.value}" for load in told.loads]
    columns = [f"{told.first}, {load.value}" for load in told.loads]
    return Table(
        f"Over the best {told.rivals[:-1]}: median of paired ratios (lower is better)",
        ("network", *best, *columns, told.first),
        rows,
        "Everybody is compiled apart, so a ratio that differs from 1 where the answer is the best rival "
        "shows how much one compilation differs from another. Intervals hold for these copies only.",
        published=told.listed,
    )


def _cases(told: Contest, name: str, one: Found) -> list[Case]:
    """Where an answer is certainly slower or faster than the best rival, or than one that is beside it."""
    cases = []
    for load in told.loads:
        for who, answer in one.answers.items():
            for rival in dict.fromkeys((one.best(load), *told.beside)):
                if not {who, rival} <= set(one.race.samples[load]):
                    continue
                ratio = one.race.ratio(who, rival, load)
                if not ratio.low <= 1 <= ratio.high:
                    detail = f"{interval_cell(ratio)}, {load.value}, {answer.plan}"
                    cases.append(Case(f"{name}, {who}", rival, ratio.median, detail))
    return cases


def _losses(told: Contest, found: Mapping[str, Found]) -> tuple[list[str], list[Claim]]:
    """Of each answer and load, who is certainly slower; and what is claimed of the first answer."""
    remarks, claims = [], []
    for load, who in product(told.loads, told.ours):
        ratios = {name: one.ratios(load).get(who) for name, one in found.items()}
        slower = [f"{n} {r.median:.3f}" for n, r in ratios.items() if r and r.low > 1 and r.median > _MOST]
        if any(ratios.values()):
            named = ", ".join(slower) or "none"
            remarks.append(f"{who}, {load.value}: certainly slower than {_MOST}: {named}")
            if told.claimed and who == told.first:
                what = f"share of networks certainly slower than {_MOST}, {load.value}"
                claims.append(Claim(what, _SLOWER_SHARE, len(slower) / len(ratios)))
    return remarks, claims


def _points(told: Contest, found: Mapping[str, Found]) -> Iterator[Point]:
    """Each network with the first answer over plain ``CPU``, or over the best device where there are two."""
    load = told.loads[0]
    for name, one in found.items():
        default = "CPU" if told.pair == "cpu" else one.best(load)
        samples = one.race.samples[load]
        if load is Load.STEADY and {default, told.first} <= set(samples):
            ratio = one.race.ratio(told.first, default, load).median
            yield Point(name, float(np.median(samples[default])), ratio)


def _bands(told: Contest, found: Mapping[str, Found]) -> tuple[Table, list[Claim]]:
    """Geometric means by how long networks take, and of all; and what is claimed of them."""
    first = told.loads[0]
    inside = {band: [one for one in found.values() if one.band(first) == band] for _, band in _BANDS}
    rows, claims = [], []
    for band, networks in {**inside, _ALL: list(found.values())}.items():
        cells = []
        for load, who in product(told.loads, told.ours) if networks else ():
            ratios = [one.ratios(load).get(who) for one in networks]
            logs = [np.log(ratio.median) for ratio in ratios if ratio]
            mean = float(np.exp(np.mean(logs))) if logs else np.nan
            cells.append(f"{mean:.3f} ({len(logs)})")
            if band in told.claimed and load is first and who == told.first and logs:
                claims.append(Claim(f"{who}, {band}: geometric mean", told.claimed[band], mean))
        rows += [(band, *cells)] if cells else []
    columns = [f"{who}, {load.value}" for load, who in product(told.loads, told.ours)]
    return Table("Geometric means by the shortest latency (networks)", ("band", *columns), rows), claims


def _noise_floor(found: Mapping[str, Found]) -> list[str]:
    """How much copies of the best rival differ: no ratio means more than that."""
    spreads = {}
    for name, one in found.items():
        medians = one.race.copies.get(one.best(next(iter(one.race.samples))), ())
        if len(medians) > 1:
            spreads[name] = max(medians) / min(medians)
    if not spreads:
        return ["everybody was compiled once: how much copies differ was not measured"] if found else []
    worst = max(spreads, key=spreads.__getitem__)
    middle = float(median_interval(np.array(list(spreads.values()))).median)
    return [
        f"copies of the best rival of {len(spreads)} of {len(found)} networks differ by nothing but luck: "
        f"the slowest copy's median over the fastest one's is {middle:.3f} (median of the networks), at most "
        f"{spreads[worst]:.3f} ({worst})"
    ]


def _missing(found: Mapping[str, Found]) -> list[str]:
    """Who could not be run on which networks, and why."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for name, one in found.items():
        for who, reason in one.race.failures.items():
            reasons.setdefault((who, reason), []).append(name)
    return [
        f"{who} could not be run on {', '.join(names) if len(names) < len(found) else 'all'}: {reason}"
        for (who, reason), names in reasons.items()
    ]
