"""What operations cost before anything is measured: the network of costs beside the roofline.

Networks that nothing was trained on were measured on each kind of device (``data/costs``), so that this
needs no measuring. A device is known as ``calibrate`` measured it, or as it tells of itself; either way also
with factors by class of op from ten of the networks, as ``calibrate MODEL...`` finds them, for the others.
Networks that were measured in several hours show how far measuring itself is off.
"""

from __future__ import annotations

import math
from itertools import combinations
from pathlib import Path

import numpy as np

from cost_training import DATA, HELD_OUT, SHIPPED
from harness.result import Claim, Result, Table, exact_ratio
from ov_autoplace._base.arrays import FloatArray
from ov_autoplace.cost.analytic import Roofline
from ov_autoplace.cost.estimate import class_factors, seconds_by_class
from ov_autoplace.cost.learned import CostNetwork
from ov_autoplace.cost.samples import CostSamples, Measurement
from ov_autoplace.cost.target import DeviceProfile
from ov_autoplace.training.judging import Predictor, is_validation, judge

_KNOWN = ("calibrated", "as it tells of itself")
_FEW, _DRAWS = 10, 5  # networks that correct the others, and how often they are drawn
_TYPICAL = 1.5  # factor, at most, as the documents say


def run(quick: bool, seed: int) -> Result:
    """A row for each file, rival and way in which a device is known.

    Args:
        quick: The held-out networks of one file.
        seed: Of which networks correct the others.
    """
    rivals: dict[str, Predictor | None] = {"roofline": None, "network": CostNetwork.load(SHIPPED)}
    rows, few, again, ratios, claims = [], [], [], [], []
    for path in sorted(DATA.glob(f"{HELD_OUT}*.npz" if quick else "*.npz"))[: 1 if quick else None]:
        title, samples = _judged(path)
        if path.stem.startswith(HELD_OUT):
            few += [
                (title, rival, how, *_cells(corrected(samples, predictor, known, seed)))
                for known, how in enumerate(_KNOWN)
                for rival, predictor in rivals.items()
            ]
            again += _again(title, *measured_again(samples))
        for known, how in enumerate(_KNOWN):
            for rival, predictor in rivals.items():
                found = judge(samples, predictor, known)
                s = found.summary()
                shares = (f"{100 * s[key]:.0f}" for key in ("p90_error", "ratio_error"))
                factors = (f"{s[key]:.2f}" for key in ("typical", "worst", "rank", "regret", "worst_regret"))
                rows.append((title, rival, how, *factors, *shares))
                if predictor is not None:
                    what = f"{title}, {how}: typical factor"
                    ratios.append(exact_ratio(what, s["typical"], len(found.factors)))
                    if path.stem.startswith(HELD_OUT):
                        claims.append(Claim(what, _TYPICAL, s["typical"]))
    columns = ("networks", "by", "device", "typical factor", "worst", "rank of kernels", "width chosen")
    columns += ("worst width", "90th percentile of errors %", "error of ratios %")
    note = (
        "The width that is predicted to be fastest takes so many times what the fastest one takes. Nothing "
        "was trained on devices of an unseen kind."
    )
    corrections = ("networks", "by", "device", "typical factor", "90th percentile of errors %", "worst")
    hours = ("networks", "typical factor", "90th percentile of errors %", "worst", "error of ratios %")
    beside = "What the reference model tells of the hours is taken into account."
    return Result(
        "Costs before anything is measured",
        (
            Table("Latencies of whole networks", columns, rows, note),
            Table(f"Corrected by latencies of {_FEW} other networks", corrections, few),
            Table("One hour's latencies beside another's", hours, again, beside),
        ),
        tuple(ratios),
        claims=tuple(claims),
    )


def corrected(samples: CostSamples, predictor: Predictor | None, known: int, seed: int) -> FloatArray:
    """Logarithms of how far latencies are off with factors by class of op from ten other networks.

    As :func:`judge`, it takes each network in its least disturbed hour.

    Args:
        samples: Of networks that nothing was trained on.
        predictor: Of what ops take; ``None`` = the roofline.
        known: What is known of the device, see :func:`judge`.
        seed: Of which networks are the ten.
    """
    random, found = np.random.default_rng(seed), []
    runs_of: dict[tuple[str, str, int], list[tuple[Measurement, DeviceProfile, float]]] = {}
    for m in samples.undisturbed:
        profiles = samples.known[m.setting]
        if known < len(profiles):
            runs_of.setdefault(samples.settings[m.setting].without_hour, []).append((m, *profiles[known]))
    for runs in runs_of.values():
        if len(runs) < 2 * _FEW:
            continue
        rows = []
        for m, device, _ in runs:
            ops = samples.networks[m.network].ops
            predicted = Roofline.of(ops, device) if predictor is None else predictor.predict(ops, device)
            rows.append(seconds_by_class(ops, predicted.seconds))
        estimated = np.array(rows)
        launches = np.array([launch for *_, launch in runs])
        measured = np.array([m.seconds for m, *_ in runs])
        for _ in range(_DRAWS):
            order = random.permutation(len(runs))
            few, others = order[:_FEW], order[_FEW:]
            factors = class_factors(estimated[few], (measured - launches)[few])
            found.append(np.log((estimated @ factors + launches)[others] / measured[others]))
    return np.concatenate(found) if found else np.zeros(0)


def measured_again(samples: CostSamples) -> tuple[FloatArray, FloatArray]:
    """How far one hour's latencies are from another's, and its ratios between settings, as logarithms.

    No estimate can be nearer to what was measured once than that.
    """
    hours: dict[int, dict[str, dict[tuple[str, str, int], float]]] = {}
    for m in samples.comparable:
        setting = samples.settings[m.setting]
        own = hours.setdefault(m.network, {}).setdefault(setting.device, {})
        own[setting.without_hour] = math.log(m.seconds)
    latencies: list[float] = []
    ratios: list[float] = []
    for of_network in hours.values():
        for one, other in combinations(of_network.values(), 2):
            differ = [one[setting] - other[setting] for setting in one if setting in other]
            latencies += differ
            ratios += [abs(a - b) for a, b in combinations(differ, 2)]
    return np.array(latencies), np.array(ratios)


def _again(title: str, latencies: FloatArray, ratios: FloatArray) -> list[tuple[str, ...]]:
    """A row, if anything was measured in two hours."""
    if not len(ratios):
        return []
    return [(title, *_cells(latencies), f"{100 * (np.exp(np.median(ratios)) - 1):.0f}")]


def _cells(errors: FloatArray) -> tuple[str, str, str]:
    """Typical factor, 90th percentile of errors in percent, and worst factor."""
    if not len(errors):
        return "-", "-", "-"
    off = np.exp(np.abs(errors))
    return f"{np.median(off):.2f}", f"{100 * (np.quantile(off, 0.9) - 1):.0f}", f"{off.max():.2f}"


def _judged(path: Path) -> tuple[str, CostSamples]:
    """Networks of a file that nothing was trained on, and what they are."""
    samples = CostSamples.load(path)
    if path.stem.startswith(HELD_OUT):
        is_seen = path.with_name(path.name.removeprefix(HELD_OUT)).exists()
        return f"{path.stem}, {len(samples.networks)}{'' if is_seen else ' (unseen kind)'}", samples
    samples = samples.part(is_validation)
    return f"a tenth of {path.stem}, {len(samples.networks)}", samples
