"""Real latency: each device alone, AUTO, default HETERO and AUTOPLACE in three modes, in one race per model.

The pairs: ``alias`` is the CPU plugin twice, XCPU on one thread beside CPU on two. ``gpu`` is OpenVINO's
GPU plugin beside the CPU plugin; without a GPU that OpenVINO knows it needs the variables of
``tools/virtual_gpu``, whose convolutions are very slow, so there transformers are the realistic case and
small CNNs the extreme one. All devices compute in f32. HETERO without affinities is given the devices in
the order that AUTOPLACE is given.

Transfers are measured once per pair and not in every process, as with ``AUTOPLACE_TARGET``.
Ratios are medians of paired ratios, from the same rounds of a race, with 95 % intervals. Short models are
compiled several times, because copies of one model on one device differ in speed. Whether an answer is ever
slower than the best device is asked of all models by ``--with models=all modes=PROFILE rivals=``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from harness.environment import PAIRS
from harness.process import Pieces
from harness.race import MODES, RIVALS, Race, race_model, transfers_of
from harness.result import Case, Ratio, Result, Table, interval_cell, measured_ratio, milliseconds
from problems.models import build, names

__all__ = ["cases_of", "measure", "race_rows", "ratio_rows", "run"]

_SECONDS = {True: 3.0, False: 8.0}
_TUNE_MS = {True: 5_000.0, False: 15_000.0}
_TIMEOUT = {True: 180.0, False: 420.0}  # of a model
# Of a run: idle, two cores need about 13 minutes for the whole alias pair and 25 for the GPU's.
_WHOLE = {True: 600.0, False: 2100.0}
_WITHIN = 1.02
_NAMES = {"ZERO_SHOT": "zero-shot", "PROFILE": "profile", "TUNE": "tune"}
_TITLES = {
    "alias": "Real latency on the CPU plugin twice (XCPU on one thread, CPU on two)",
    "gpu": "Real latency on GPU and CPU",
}


def run(
    quick: bool,
    seed: int,
    pair: str = "alias",
    models: tuple[str, ...] = (),
    modes: tuple[str, ...] = MODES,
    rivals: tuple[str, ...] = RIVALS,
) -> Result:
    """Race every model of a pair, each in a process of its own.

    Args:
        quick: Few models and short races.
        seed: Of placing and of the order in each round.
        pair: A key of :data:`PAIRS`.
        models: Parts of their names, or ``all``; a choice of the pair's where empty.
        modes: AUTOPLACE's.
        rivals: Virtual devices that get all devices.
    """
    races = {}
    pieces = Pieces(_TIMEOUT[quick], float("inf") if models else _WHOLE[quick])
    target = pieces("transfers", transfers_of, pair=pair) or ""
    what = {"pair": pair, "quick": quick, "seed": seed, "modes": modes, "rivals": rivals, "target": target}
    for name in names(pair, quick, models):
        if (fields := pieces(name, measure, name=name, **what)) is not None:
            races[name] = Race.from_dict(fields)
    return Result(
        title=_TITLES[pair],
        tables=tuple(_tables(PAIRS[pair], races)) if races else (),
        ratios=tuple(_ratios(races)),
        cases=tuple(cases_of(races)),
        remarks=(*pieces.remarks, *_remarks(races)),
        data={"races": {name: race.to_dict() for name, race in races.items()}},
    )


def measure(
    pair: str, name: str, quick: bool, seed: int, modes: Sequence[str], rivals: Sequence[str], target: str
) -> dict[str, Any]:
    """The race of one model, for JSON; ``target`` is what :func:`transfers_of` gave."""
    race = race_model(
        pair, build(name), _SECONDS[quick], modes, _TUNE_MS[quick], rivals, seed=seed, target=target
    )
    return race.to_dict()


def _tables(devices: Sequence[str], races: Mapping[str, Race]) -> list[Table]:
    ours = [f"AUTOPLACE {_NAMES[mode]}" for mode in MODES]
    return [
        Table(
            "Milliseconds: median [95 % interval]",
            ("model", *devices, "AUTO", "HETERO", *ours, "rounds x copies"),
            race_rows(races),
            "A sample of a round is the mean over all copies of a contender.",
        ),
        Table(
            "AUTOPLACE over the best single device and over default HETERO: median of paired ratios",
            (
                "model",
                "best device",
                *(f"{_NAMES[mode]} / best" for mode in MODES),
                *(f"{_NAMES[mode]} / HETERO" for mode in MODES),
                "rounds x copies",
                "answers (submodels)",
            ),
            ratio_rows(races),
            "The best device is the one with the lowest median in the race itself. Every contender was "
            "compiled apart, so a ratio that differs from 1 where the answer is that device shows how much "
            "one compilation differs from another. Intervals hold for these copies, not for other ones.",
        ),
    ]


def race_rows(races: Mapping[str, Race]) -> list[tuple[str, ...]]:
    """A row of latencies per model."""
    rows = []
    for name, race in races.items():
        order = (*race.devices, "AUTO", "HETERO", *MODES)
        cells = [milliseconds(race.samples[c]) if c in race.samples else "-" for c in order]
        rows.append((name, *cells, race.runs))
    return rows


def ratio_rows(races: Mapping[str, Race]) -> list[tuple[str, ...]]:
    """A row of paired ratios per model."""
    rows = []
    for name, race in races.items():
        rivals = (race.best_device, "HETERO")
        cells = [
            interval_cell(race.ratio(mode, rival)) if {mode, rival} <= set(race.samples) else "-"
            for rival in rivals
            for mode in MODES
        ]
        rows.append((name, race.best_device, *cells, race.runs, _answers(race)))
    return rows


def _answers(race: Race) -> str:
    return "; ".join(
        f"{_NAMES[mode]}: {'+'.join(answer.devices)}"
        + (f" ({answer.subgraphs})" if len(answer.devices) > 1 else "")
        for mode, answer in race.answers.items()
    )


def cases_of(races: Mapping[str, Race]) -> list[Case]:
    """Where an answer is certainly slower or faster than the best device, AUTO or HETERO."""
    cases = []
    for name, race in races.items():
        for mode, answer in race.answers.items():
            for rival in (race.best_device, *RIVALS):
                if not {mode, rival} <= set(race.samples):
                    continue
                ratio = race.ratio(mode, rival)
                if ratio.low <= 1 <= ratio.high:
                    continue
                title = f"best device, {rival}" if rival == race.best_device else rival
                detail = f"{interval_cell(ratio)}, {race.runs} paired runs, on {'+'.join(answer.devices)}"
                if answer.devices == (rival,):
                    detail += ", which is that device: copies differ, not placements"
                cases.append(Case(f"{name}, {_NAMES[mode]}", title, ratio.median, detail))
    return cases


def _ratios(races: Mapping[str, Race]) -> list[Ratio]:
    return [
        measured_ratio(
            f"{name}: {_NAMES[mode]} over the best device", race.ratio(mode, race.best_device), race.rounds
        )
        for name, race in races.items()
        for mode in race.answers
        if mode in race.samples
    ]


def _remarks(races: Mapping[str, Race]) -> list[str]:
    """How often each mode is within 2 % of the best device, and who could not be run and why."""
    remarks = []
    for mode in MODES:
        found = [race.ratio(mode, race.best_device) for race in races.values() if mode in race.samples]
        if found:
            within = sum(ratio.median <= _WITHIN for ratio in found)
            middle = float(np.exp(np.mean([np.log(ratio.median) for ratio in found])))
            remarks.append(
                f"AUTOPLACE {_NAMES[mode]}: {within} of {len(found)} models within {_WITHIN} of the best "
                f"single device's time; geometric mean of the ratios {middle:.3f}"
            )
    remarks += _noise_floor(races)
    reasons: dict[tuple[str, str], list[str]] = {}
    for name, race in races.items():
        for contender, reason in race.failures.items():
            reasons.setdefault((contender, reason), []).append(name)
    for (contender, reason), models in reasons.items():
        where = "every model" if len(models) == len(races) else ", ".join(models)
        remarks.append(f"{contender} could not be run on {where}: {reason}")
    return remarks


def _noise_floor(races: Mapping[str, Race]) -> list[str]:
    """How much copies of the best device differ: no ratio means more than that."""
    spreads = {
        name: race.spread(race.best_device)
        for name, race in races.items()
        if len(race.copy_medians[race.best_device]) > 1
    }
    if not spreads:
        return ["every contender was compiled once: how much copies differ was not measured"]
    middle, worst = float(np.median(list(spreads.values()))), max(spreads, key=spreads.__getitem__)
    return [
        f"copies of the best device on {len(spreads)} of {len(races)} models, which differ by nothing but "
        f"luck: the slowest copy's median over the fastest one's is {middle:.3f} (median of the models), "
        f"at most {spreads[worst]:.3f} ({worst})"
    ]
