"""Judging what predicts costs by what was collected, beside the roofline."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Protocol

import numpy as np

from ov_autoplace._base.arrays import FloatArray
from ov_autoplace.cost.analytic import Roofline
from ov_autoplace.cost.learned import Prediction
from ov_autoplace.cost.op_graph import OpGraph
from ov_autoplace.cost.samples import CostSamples, Measurement, Network
from ov_autoplace.cost.target import DeviceProfile

__all__ = ["Judgement", "Predictor", "is_validation", "judge"]

_VALIDATION_SHARE = 10


def is_validation(network: Network) -> bool:
    """Whether a network is one of the tenth that choices are made by, and that is not trained on."""
    return zlib.crc32(network.name.encode()) % _VALIDATION_SHARE == 0


@dataclass(frozen=True, eq=False)
class Judgement:
    """How far predictions are off, over M measurements.

    Attributes:
        factors: Natural logarithm of predicted over measured latency, ``float64[M]``.
        ranks: Rank correlation (Spearman) over the kernels of each, ``float64[M]``; nan where there are few.
        ratios: Error of the logarithm of the ratio between two settings of one network on one device,
            ``float64[P]``.
        regrets: What the width takes that is predicted to be fastest, over what the fastest one takes, of
            each network and precision, ``float64[Q]``.
    """

    factors: FloatArray
    ranks: FloatArray
    ratios: FloatArray
    regrets: FloatArray

    def summary(self) -> dict[str, float]:
        """Typical factor, 90th percentile of the error, worst factor, rank, error of ratios, and regret."""
        off = np.abs(self.factors)
        return {
            "typical": float(np.exp(np.median(off))),
            "p90_error": float(np.exp(np.quantile(off, 0.9)) - 1),
            "worst": float(np.exp(off.max())),
            "rank": float(np.nanmedian(self.ranks)),
            "ratio_error": float(np.exp(np.median(self.ratios)) - 1) if len(self.ratios) else math.nan,
            "regret": float(np.exp(np.log(self.regrets).mean())) if len(self.regrets) else math.nan,
            "worst_regret": float(self.regrets.max(initial=1.0)),
        }


class Predictor(Protocol):
    """What predicts costs."""

    def predict(self, ops: OpGraph, device: DeviceProfile) -> Prediction:
        """What ops take on a device, with the launch left out."""


def judge(
    samples: CostSamples,
    network: Predictor | None,
    known: int = 0,
    settings: Sequence[int] | None = None,
) -> Judgement:
    """Compare predictions with what was measured, in the least disturbed hour of each network.

    Args:
        samples: What was measured.
        network: Whose predictions, a network's or a rival's; ``None`` = the roofline's.
        known: What is known of the device, by its position in ``CostSamples.known``: 0 = it was
            calibrated as it is set up, 1 = what it tells of itself, 2 and 3 = the same of all threads alone.
        settings: Positions of the settings to judge; all when ``None``.
    """
    from scipy.stats import spearmanr

    factors, ranks = [], []
    of_network: dict[tuple[int, str], list[float]] = {}
    choices: dict[tuple[int, str, str], list[tuple[float, float]]] = {}
    for m in samples.undisturbed:
        if settings is not None and m.setting not in settings:
            continue
        profiles = samples.known[m.setting]
        ops = samples.networks[m.network].ops
        device, launch = profiles[known if known < len(profiles) else known - len(profiles)]
        seconds = (
            Roofline.of(ops, device).seconds if network is None else network.predict(ops, device).seconds
        )
        factor = math.log((float(seconds.sum()) + launch) / m.seconds)
        factors.append(factor)
        ranks.append(_rank(spearmanr, seconds, m))
        own = m.network, samples.settings[m.setting].without_hour[0]
        of_network.setdefault(own, []).append(factor)
        choices.setdefault((*own, device.precision), []).append((m.seconds * math.exp(factor), m.seconds))
    ratios = [abs(one - other) for of_one in of_network.values() for one, other in combinations(of_one, 2)]
    regrets = [min(of)[1] / min(seconds for _, seconds in of) for of in choices.values() if len(of) > 1]
    return Judgement(*(np.array(one) for one in (factors, ranks, ratios, regrets)))


def _rank(spearmanr: Callable[..., Any], seconds: FloatArray, m: Measurement) -> float:
    runs = m.kernel_of >= 0
    predicted = np.bincount(m.kernel_of[runs], weights=seconds[runs], minlength=len(m.kernel_seconds))
    if len(predicted) < 4 or np.ptp(predicted) == 0 or np.ptp(m.kernel_seconds) == 0:
        return math.nan
    return float(spearmanr(predicted, m.kernel_seconds)[0])
