"""How many runs until a true difference of 2 % is told apart, under synthetic noise.

Candidate B takes 2 % longer than A. Every run takes its candidate's time, times the machine's speed at
that moment, times a disturbance of its own. Three ways to decide which one is faster:

* ``sequential mean-of-5``: ten runs of one candidate, then ten of the other, the mean of the last five of
  each (the protocol of the HSDAG paper's code); with more runs, the mean over repeated blocks.
* ``sequential median``: half of the runs for one candidate, then half for the other, medians.
* ``paired median``: both in turns in a random order, the median of the paired ratios
  (``ov_autoplace._base.statistics.paired_ratio``).

All three just name the one that looks faster. The profiler's race (``_core.race_samplers``, the code that
runs on devices) also knows when it may stop: a candidate leaves when it is slower with 99 % confidence
over the whole race.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

from harness.result import Case, Result, Table, exact_ratio
from ov_autoplace._base.statistics import paired_ratio
from ov_autoplace._core import race_samplers

_BLOCK, _KEPT = 10, 5
_RUNS = (20, 40, 60, 100, 200, 400, 1000, 2000)  # of both candidates together, whole blocks
_ENOUGH = 0.95
_MOST_ROUNDS = 1000
_TRIALS = {True: 100, False: 1000}
_RACES = {True: 40, False: 300}

Samples = NDArray[np.float64]
Decider = Callable[["Noise", int, float, np.random.Generator], bool]


@dataclass(frozen=True, slots=True)
class Noise:
    """What disturbs runs.

    Attributes:
        jitter: Standard deviation of the logarithm of each run's own disturbance.
        drift: Standard deviation of the logarithm of the machine's speed.
        memory: Runs after which the machine's speed has forgotten itself (its time of correlation).
        tail: Share of runs that something else interrupts; they last longer by a Pareto number of index 1.5.
    """

    jitter: float
    drift: float = 0.0
    memory: float = 50.0
    tail: float = 0.0

    def draw(self, runs: int, random: np.random.Generator) -> Samples:
        """Factors of ``runs`` runs in the order of time, ``float64[runs]``."""
        own = random.lognormal(sigma=self.jitter, size=runs)
        interrupted = random.random(runs) < self.tail
        own = np.where(interrupted, own * (1 + 0.1 * random.pareto(1.5, runs)), own)
        return own * np.exp(self.drift * self._walk(runs, random))

    def _walk(self, runs: int, random: np.random.Generator) -> Samples:
        """A stationary autoregressive series of variance 1."""
        kept = np.exp(-1 / self.memory)
        steps = random.standard_normal(runs)
        steps[1:] *= np.sqrt(1 - kept**2)
        return np.asarray(lfilter([1.0], [1.0, -kept], steps))


NOISES = {
    "quiet machine": Noise(jitter=0.01),
    "heavy tails": Noise(jitter=0.02, tail=0.1),
    "drifting speed": Noise(jitter=0.02, drift=0.1),
    "drifting speed and heavy tails": Noise(jitter=0.03, drift=0.2, tail=0.1),
}


def _mean_of_5(noise: Noise, runs: int, difference: float, random: np.random.Generator) -> bool:
    factors = noise.draw(runs, random).reshape(-1, 2, _BLOCK)[:, :, -_KEPT:]
    first, second = factors.mean(axis=(0, 2))
    return bool(first < second * (1 + difference))


def _sequential_median(noise: Noise, runs: int, difference: float, random: np.random.Generator) -> bool:
    first, second = np.median(noise.draw(runs, random).reshape(2, -1), axis=1)
    return bool(first < second * (1 + difference))


def _paired(noise: Noise, runs: int, difference: float, random: np.random.Generator) -> bool:
    pairs = random.permuted(noise.draw(runs, random).reshape(-1, 2), axis=1)
    return paired_ratio(pairs[:, 0], pairs[:, 1] * (1 + difference)).median < 1


deciders: dict[str, Decider] = {
    "sequential mean-of-5": _mean_of_5,
    "sequential median": _sequential_median,
    "paired median": _paired,
}
"""Each says whether it takes A, which is the right answer, for the faster one."""


def share_right(decide: Decider, noise: Noise, runs: int, difference: float, trials: int, seed: int) -> float:
    """How often a decider is right."""
    random = np.random.default_rng((seed, runs))
    return float(np.mean([decide(noise, runs, difference, random) for _ in range(trials)]))


def runs_needed(shares: Mapping[int, float]) -> int | None:
    """The fewest runs from which on 95 % of the answers or more are right; ``None`` = none of those tried."""
    needed = None
    for runs in sorted(shares, reverse=True):
        if shares[runs] < _ENOUGH:
            break
        needed = runs
    return needed


def race_once(noise: Noise, difference: float, seed: int) -> tuple[int, str]:
    """One race on the profiler's own code: runs of both together, and ``right``, ``wrong`` or ``open``."""
    factors = iter(noise.draw(2 * _MOST_ROUNDS, np.random.default_rng(seed)).tolist())
    result = race_samplers(
        [lambda: next(factors), lambda: next(factors) * (1 + difference)],
        float("inf"),
        max_rounds=_MOST_ROUNDS,
        seed=seed,
    )
    runs = sum(len(entry.samples) for entry in result.entries)
    if not any(entry.dropped for entry in result.entries):
        return runs, "open"
    return runs, "wrong" if result.entries[0].dropped else "right"


def run(quick: bool, seed: int, difference: float = 0.02) -> Result:
    """All noises and deciders.

    Args:
        quick: Fewer trials.
        seed: Of the noise.
        difference: How much longer B takes.
    """
    trials, races = _TRIALS[quick], _RACES[quick]
    share_rows, race_rows, ratios, cases = [], [], [], []
    for title, noise in NOISES.items():
        needed: dict[str, int | None] = {}
        for name, decide in deciders.items():
            shares = {runs: share_right(decide, noise, runs, difference, trials, seed) for runs in _RUNS}
            needed[name] = runs_needed(shares)
            cells = [f"{100 * shares[runs]:.0f}" for runs in _RUNS]
            share_rows.append((f"{title}: {name}", *cells, _count(needed[name])))
        ended = [race_once(noise, difference, seed + i) for i in range(races)]
        equal = [race_once(noise, 0.0, seed + races + i)[1] for i in range(races)]
        runs = np.array([count for count, _ in ended])
        middle, words = float(np.median(runs)), [word for _, word in ended]
        shares = [words.count("right"), words.count("wrong"), races - equal.count("open")]
        cells = [
            f"{middle:.0f}",
            f"{np.quantile(runs, 0.95):.0f}",
            *(f"{100 * n / races:.1f}" for n in shares),
        ]
        rival = needed["sequential mean-of-5"]
        race_rows.append((title, *cells, _count(rival)))
        ratio, name = middle / (rival or _RUNS[-1]), f"{title}: runs of a race over sequential mean-of-5"
        ratios.append(exact_ratio(name, ratio, races, "decided"))
        detail = f"the race ends after {middle:.0f} runs (median), mean-of-5 needs {_count(rival)}"
        cases.append(Case(title, "sequential mean-of-5 until 95 % of its answers are right", ratio, detail))
    columns = (
        "noise", "runs, median", "runs, p95", "right %", "wrong %", "called different when equal %",
        "mean-of-5 until 95 %",
    )  # fmt: skip
    note = (
        "A race stops only when it is 99 % sure, the sequential ways merely name the lower number: on a "
        "quiet machine certainty costs more runs than naming does."
    )
    title = f"Right answers in %, of {trials} trials, after so many runs of both candidates together"
    shown = f"The profiler's own stopping rule, {races} races each, at most {2 * _MOST_ROUNDS:,} runs"
    return Result(
        "Profiler: runs until a true difference is told apart",
        (
            Table(title, ("noise: decided by", *map(str, _RUNS), "runs until 95 %"), share_rows),
            Table(shown, columns, race_rows, note),
        ),
        tuple(ratios),
        tuple(cases),
    )


def _count(runs: int | None) -> str:
    return f"more than {_RUNS[-1]:,}" if runs is None else f"{runs:,}"
