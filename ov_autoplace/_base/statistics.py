"""Medians of noisy timings with distribution-free intervals."""

from __future__ import annotations

from functools import cache
from math import comb
from typing import NamedTuple

import numpy as np

from ov_autoplace._base.arrays import FloatArray

__all__ = [
    "CONVINCING_ROUNDS",
    "ESTIMATE_MARGIN",
    "MINIMAL_GAIN",
    "Interval",
    "median_interval",
    "paired_ratio",
    "was_disturbed",
]

ESTIMATE_MARGIN = 0.1
"""Where predictions from estimated costs differ by less, they do not say which placement is faster."""

MINIMAL_GAIN = 0.02
"""A mix of devices must be measured faster than the best single device by this much to be chosen."""

CONVINCING_ROUNDS = 6
"""Fewer paired samples than this give no 95 % interval of a median, so they cannot prove a gain."""

# Mean over median above which samples were disturbed.
_QUIET = 1.3


class Interval(NamedTuple):
    """A median with a confidence interval."""

    median: float
    low: float
    high: float


def median_interval(samples: FloatArray, confidence: float = 0.95) -> Interval:
    """Median of ``samples`` with the interval between two order statistics.

    The number of samples below the true median is binomial(n, 1/2) whatever the distribution, which
    gives the ranks (see Conover, Practical Nonparametric Statistics, section 3.2). With too few samples
    for the asked confidence the interval is the whole range.

    Args:
        samples: ``float64[n]``, n > 0.
        confidence: Of the interval.
    """
    ordered = np.sort(np.asarray(samples, dtype=np.float64))
    rank = _lower_rank(len(ordered), confidence)
    return Interval(float(np.median(ordered)), float(ordered[rank]), float(ordered[-1 - rank]))


def paired_ratio(numerator: FloatArray, denominator: FloatArray) -> Interval:
    """Median ratio of samples that were taken in the same rounds of a race.

    Pairing removes what the noise of a shared machine does to both. Rounds that only one of the two
    took part in are left out.
    """
    n = min(len(numerator), len(denominator))
    return median_interval(np.asarray(numerator[:n]) / np.asarray(denominator[:n]))


def was_disturbed(samples: FloatArray) -> bool:
    """Whether a few samples are as long as only other work on the machine makes them, ``float64[n]``."""
    return len(samples) > 0 and float(np.mean(samples)) > _QUIET * float(np.median(samples))


@cache
def _lower_rank(n: int, confidence: float) -> int:
    """Largest k with P(binomial(n, 1/2) < k) <= (1 - confidence) / 2, as a 0-based index."""
    if n > 1000:  # the normal approximation is exact enough, and the sums below would be long
        from statistics import NormalDist

        z = NormalDist().inv_cdf((1 + confidence) / 2)
        return max(int(n / 2 - z * np.sqrt(n) / 2 - 0.5), 0)
    tail, k = 0.0, 0
    while k < n // 2:
        tail += comb(n, k) / 2**n
        if tail > (1 - confidence) / 2:
            break
        k += 1
    return max(k - 1, 0)
