"""Real latency: each device alone, AUTO, default HETERO and AUTOPLACE in three modes, in one race per model.

    python tools/bench/real_latency.py [--pair alias|gpu] [--quick] [--models PART ...] [--seed 0]

The pairs: ``alias`` is the CPU plugin twice, XCPU on one thread beside CPU on two. ``gpu`` is OpenVINO's
GPU plugin beside the CPU plugin; without a GPU that OpenVINO knows it needs the variables of
``tools/virtual_gpu``, whose convolutions are very slow, so there transformers are the realistic case and
small CNNs the extreme one. All devices compute in f32. HETERO without affinities is given the devices in
the order that AUTOPLACE is given.

Hand-overs are measured once per pair and not in every process, as with ``AUTOPLACE_TARGET``.
Ratios are medians of paired ratios, from the same rounds of a race, with 95 % intervals. Short models are
compiled several times, because copies of one model on one device differ in speed.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from bounded_process import child_until
from common import machine_line
from device_race import MODES, Answer, Race, core_of, race_model
from real_models import PAIRS, build, names
from suite_process import Failure
from suite_report import print_result
from suite_result import Case, Ratio, Result, Table, interval_cell, measured_ratio, milliseconds

__all__ = ["cases_of", "measure", "race_rows", "ratio_rows", "run"]

_SECONDS = {True: 3.0, False: 8.0}
_TUNE_MS = {True: 5_000.0, False: 15_000.0}
_TIMEOUT = {True: 180.0, False: 420.0}  # of a model
# Of a run: idle, two cores need about 13 minutes for the whole alias pair and 25 for the GPU's.
_WHOLE = {True: 600.0, False: 2100.0}
_NAMES = {"ZERO_SHOT": "zero-shot", "PROFILE": "profile", "TUNE": "tune"}
_TITLES = {
    "alias": "Real latency on the CPU plugin twice (XCPU on one thread, CPU on two)",
    "gpu": "Real latency on GPU and CPU",
}


def run(quick: bool, seed: int, pair: str = "alias", models: Sequence[str] | None = None) -> Result:
    """Race every model of a pair, each in a process of its own.

    Args:
        quick: Few models and short races.
        seed: Of placing and of the order in each round.
        pair: A key of :data:`PAIRS`.
        models: Their names; those of the pair when ``None``.
    """
    chosen = names(pair, quick) if models is None else models
    races, failed = {}, {}
    end = time.perf_counter() + _WHOLE[quick]
    target = child_until(end, _TIMEOUT[quick], "device_race:hand_overs", {"pair": pair})
    if isinstance(target, Failure):
        failed["hand-overs"], target = target.reason, ""
    for name in chosen:
        arguments = {"pair": pair, "name": name, "quick": quick, "seed": seed, "target": target}
        outcome = child_until(end, _TIMEOUT[quick], "real_latency:measure", arguments)
        if isinstance(outcome, Failure):
            failed[name] = outcome.reason
        else:
            races[name] = race_of(outcome)
    remarks = [f"{name}: not measured: {reason}" for name, reason in failed.items()]
    remarks += _remarks(races)
    losing, winning = cases_of(races)
    devices = PAIRS[pair]
    return Result(
        title=_TITLES[pair],
        command=f"python tools/bench/real_latency.py --pair {pair}{' --quick' * quick} --seed {seed}",
        tables=tuple(_tables(devices, races)) if races else (),
        ratios=tuple(_ratios(races)),
        losing=losing,
        winning=winning,
        remarks=tuple(remarks),
        data={"races": {name: to_dict(race) for name, race in races.items()}, "not measured": failed},
    )


def measure(pair: str, name: str, quick: bool, seed: int, target: str) -> dict[str, Any]:
    """The race of one model, for JSON; ``target`` is what :func:`device_race.hand_overs` gave."""
    model = build(name)
    race = race_model(
        core_of(pair),
        model,
        PAIRS[pair],
        _SECONDS[quick],
        tune_ms=_TUNE_MS[quick],
        seed=seed,
        target=target,
    )
    return to_dict(race)


def to_dict(race: Race) -> dict[str, Any]:
    """For JSON."""
    return {
        "devices": list(race.devices),
        "samples": {name: [_short(s) for s in samples.tolist()] for name, samples in race.samples.items()},
        "failures": race.failures,
        "answers": {mode: asdict(answer) for mode, answer in race.answers.items()},
        "copy_medians": {name: list(map(_short, medians)) for name, medians in race.copy_medians.items()},
    }


def _short(seconds: float) -> float:
    """Six digits are more than any clock here is good for, and a third of the file."""
    return float(f"{seconds:.6g}")


def race_of(fields: Mapping[str, Any]) -> Race:
    """The opposite of :func:`to_dict`."""
    answers = {
        mode: Answer(**{**answer, "devices": tuple(answer["devices"])})
        for mode, answer in fields["answers"].items()
    }
    samples = {name: np.array(values) for name, values in fields["samples"].items()}
    copies = {name: tuple(medians) for name, medians in fields["copy_medians"].items()}
    return Race(tuple(fields["devices"]), samples, dict(fields["failures"]), answers, copies)


def _tables(devices: Sequence[str], races: Mapping[str, Race]) -> list[Table]:
    ours = [f"AUTOPLACE {_NAMES[mode]}" for mode in MODES]
    return [
        Table(
            "Milliseconds: median [95 % interval]",
            ("model", *devices, "AUTO", "HETERO", *ours, "rounds x copies"),
            tuple(race_rows(races)),
            "A sample of a round is the mean over all copies of a contestant.",
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
            tuple(ratio_rows(races)),
            "The best device is the one with the lowest median in the race itself. Every contestant was "
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


def cases_of(races: Mapping[str, Race]) -> tuple[tuple[Case, ...], tuple[Case, ...]]:
    """Where an answer is certainly slower or faster than the best device, AUTO or HETERO."""
    losing, winning = [], []
    for name, race in races.items():
        for mode, answer in race.answers.items():
            for rival in (race.best_device, "AUTO", "HETERO"):
                if not {mode, rival} <= set(race.samples):
                    continue
                ratio = race.ratio(mode, rival)
                if ratio.low <= 1 <= ratio.high:
                    continue
                title = f"best device, {rival}" if rival == race.best_device else rival
                detail = f"{interval_cell(ratio)}, {race.runs} paired runs, on {'+'.join(answer.devices)}"
                if answer.devices == (rival,):
                    detail += ", which is that device: copies differ, not placements"
                case = Case(f"{name}, {_NAMES[mode]}", title, ratio.median, detail)
                (losing if ratio.median > 1 else winning).append(case)
    return (
        tuple(sorted(losing, key=lambda case: -case.ratio)),
        tuple(sorted(winning, key=lambda case: case.ratio)),
    )


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
            within = sum(ratio.median <= 1.02 for ratio in found)
            middle = float(np.exp(np.mean([np.log(ratio.median) for ratio in found])))
            remarks.append(
                f"AUTOPLACE {_NAMES[mode]}: {within} of {len(found)} models within 1.02 of the best single "
                f"device's time; geometric mean of the ratios {middle:.3f}"
            )
    remarks += _noise_floor(races)
    reasons: dict[tuple[str, str], list[str]] = {}
    for name, race in races.items():
        for contestant, reason in race.failures.items():
            reasons.setdefault((contestant, reason), []).append(name)
    for (contestant, reason), models in reasons.items():
        where = "every model" if len(models) == len(races) else ", ".join(models)
        remarks.append(f"{contestant} could not be run on {where}: {reason}")
    return remarks


def _noise_floor(races: Mapping[str, Race]) -> list[str]:
    """How much copies of the best device differ: no ratio means more than that."""
    spreads = {
        name: race.spread(race.best_device)
        for name, race in races.items()
        if len(race.copy_medians[race.best_device]) > 1
    }
    if not spreads:
        return ["every contestant was compiled once: how much copies differ was not measured"]
    middle, worst = float(np.median(list(spreads.values()))), max(spreads, key=spreads.__getitem__)
    return [
        f"copies of the best device on {len(spreads)} of {len(races)} models, which differ by nothing but "
        f"luck: the slowest copy's median over the fastest one's is {middle:.3f} (median of the models), "
        f"at most {spreads[worst]:.3f} ({worst})"
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pair", choices=tuple(PAIRS), default="alias")
    parser.add_argument("--quick", action="store_true", help="few models, short races")
    parser.add_argument(
        "--models", nargs="*", default=[], metavar="PART", help="only those with it in their names"
    )
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    chosen = [
        name
        for name in names(arguments.pair, arguments.quick)
        if not arguments.models or any(part in name for part in arguments.models)
    ]
    print(machine_line())
    print_result(run(arguments.quick, arguments.seed, arguments.pair, chosen))


if __name__ == "__main__":
    main()
