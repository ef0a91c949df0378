"""Fine-tuning on really measured latency: how soon it is within 1 % of the best placement known.

For each model and seed: the pretrained policy; `hsdag` from random weights in the same machinery, simulator
and all; `hsdag` as published, which is episodes of REINFORCE and 2,000 placements, all of them run on the
devices, in a budget of its own; and mode TUNE, where solvers propose and nothing learns. Beside them, on the
simulator of the model's profiled costs, as many evaluations for both networks. Every run is a process of its
own, whose time counts from its start, loading included, and needs the machine to itself; the table says what
others took of it.

Of the pair ``alias`` the models are the zoo's. One device is the best placement of most of them, and networks
that learned nothing propose that at once. Of the pair ``gpu``, which may run on a virtual GPU, the models are
the networks of ``problems/networks.py``, where a mix of both devices can be faster than each. Of ``lanes``
they are those of ``problems/branching.py``, placements are schedules on the lanes of one CPU, and one device
alone is the whole model on one of the CPU's widths.

The best placement known of a model is found in a last race in turns: of the best placements of all runs, the
solver's answer and the single devices; the fastest of these are compiled twice more
and raced again, and only that counts, so that nobody wins by the luck of one race. Whatever a run claims to
have been within 1 % is raced too before it counts. Only what the policy itself proposed is an evaluation of
it; as published, also what it had proposed before.

Whoever did not get there needs more evaluations than it had, nobody knows how many. So a ratio of two runs is
a range: where the policy that is compared with did not get there, it is more than its evaluations over ours;
where ours did not, less than the other's over ours; where neither did, anything.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import product
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov

import zoo
from harness.environment import LANES
from harness.process import Pieces, shared_folder
from harness.result import Result, Table
from ov_autoplace.graph.passes import FOLDED, formed
from problems import branching
from problems.networks import NETWORKS
from sections.finetune_race import WITHIN, Outcome, first_within, last_race, outcome_table
from sections.finetune_runs import search_simulated, tune, tune_as_published, tune_by_solvers

__all__ = ["Comparison", "Range", "compare", "run"]

_RUNS = _PRETRAINED, _SCRATCH, _PUBLISHED, _SOLVERS = (
    "pretrained",
    "hsdag",
    "hsdag as published",
    "TUNE by solvers",
)
_SEARCHES = {"pretrained simulated": "", "hsdag simulated": "hsdag"}
_COMPARED = (
    (_PRETRAINED, _SCRATCH),
    (_PRETRAINED, _PUBLISHED),
    (_PRETRAINED, _SOLVERS),
    ("pretrained simulated", "hsdag simulated"),
)
_FAMILIES = {
    "alias": ("bert", "vit", "resnet", "unet"),
    # Not great_circles: its ops are one group, so there is nothing to place.
    "gpu": ("radiance_field", "blended_radiance_fields", "random_feature_classifier", "fourier_attention"),
    # Where schedules on lanes win.
    LANES: ("bidirectional LSTM/64", "sentence pair/40", "dual encoder/small"),
}


def run(
    quick: bool,
    seed: int,
    pair: str = "alias",
    families: tuple[str, ...] = (),
    ops: int = 300,
    seeds: int = 3,
    budget: float = 60.0,
    published_budget: float = 300.0,
    evaluations: int = 2000,
    final_seconds: float = 20.0,
    parts: tuple[str, ...] = ("runs", "searches"),
    checkpoint: str = "base",
) -> Result:
    """All runs of each model, the race that says what they were worth, and the searches.

    Args:
        quick: One seed of one model, short budgets.
        seed: The first of the seeds.
        pair: Of devices.
        families: Models; the pair's when empty.
        ops: Size of each model of the pair ``alias``.
        seeds: How many.
        budget: Seconds of each run.
        published_budget: The same for HSDAG as published.
        evaluations: As published, and of each search.
        final_seconds: For each race of the last ones.
        parts: ``runs`` are timed; ``searches`` are not and need the costs that the first run measures.
        checkpoint: The pretrained policy.
    """
    families = families or _FAMILIES[pair]
    if quick:
        families, seeds, evaluations, final_seconds = families[:1], 1, min(evaluations, 20), 2.0
        budget, published_budget = min(budget, 20.0), min(published_budget, 20.0)
    pieces = Pieces()
    remarks: list[str] = []
    outcomes: list[Outcome] = []
    for family in families:
        model = _model_file(pair, family, ops)
        runs: list[dict[str, Any]] = []
        for number, kind in product(range(seed, seed + seeds), _RUNS):
            if runs and "runs" not in parts:
                break
            table = str(model.with_name(f"{model.stem}-{number}-{kind.replace(' ', '-')}.table.json"))
            what = {"model": str(model), "table": table, "pair": pair, "seed": number}
            title = f"{family}, seed {number}, {kind}"
            if kind == _PUBLISHED:
                limits = {"budget": published_budget, "evaluations": evaluations}
                found = pieces(title, tune_as_published, **what, **limits)
            elif kind == _SOLVERS:
                found = pieces(title, tune_by_solvers, **what, budget=budget)
            else:
                start = checkpoint if kind == _PRETRAINED else ""
                found = pieces(title, tune, **what, budget=budget, checkpoint=start)
            if found is not None:
                runs.append({**found, "kind": kind, "seed": number, "table": table})
        if not runs:
            continue
        if "runs" in parts:
            what = {"model": str(model), "pair": pair, "runs": runs, "seconds": final_seconds}
            race = pieces(f"{family}, last race", last_race, **what)
            if race is not None:
                outcomes += [Outcome(**fields) for fields in race["outcomes"]]
                remarks.append(
                    f"{family}: the best placement known is {race['winner']}; the best single device takes "
                    f"{race['best_single']:.3f} of its time"
                )
        if "searches" in parts:
            limits = {"evaluations": evaluations, "checkpoint": checkpoint}
            outcomes += _searches(pieces, family, runs[0]["table"], range(seed, seed + seeds), **limits)
    comparisons = [compare(outcomes, *kinds) for kinds in _COMPARED]
    comparisons = [comparison for comparison in comparisons if comparison.pairs]
    return Result(
        title=f"Fine-tuning by measured latency, pair {pair}",
        tables=(outcome_table(outcomes, budget), *(comparison.table() for comparison in comparisons)),
        remarks=(*remarks, *(comparison.sentence() for comparison in comparisons), *pieces.remarks),
        data={
            "outcomes": [asdict(outcome) for outcome in outcomes],
            "ratios": {f"{c.other} / {c.ours}": c.to_dict() for c in comparisons},
        },
    )


def _model_file(pair: str, family: str, ops: int) -> Path:
    """The model, built when it is needed for the first time."""
    path = shared_folder() / pair / f"{re.sub(r'[^a-z0-9]+', '_', family.lower())}.xml"
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        if pair == LANES:
            model = branching.build(family)
        else:
            model = NETWORKS[family]() if pair == "gpu" else zoo.build_scaled(family, ops, 0, "random")
        ov.save_model(formed(model, FOLDED), path, compress_to_fp16=False)
    return path


def _searches(
    pieces: Pieces, family: str, table: str, seeds: Sequence[int], evaluations: int, checkpoint: str
) -> list[Outcome]:
    """Searches on the simulator of the first run's costs."""
    found = {
        (kind, seed): pieces(
            f"{family}, seed {seed}, {kind}",
            search_simulated,
            table=table,
            network=network or checkpoint,
            evaluations=evaluations,
            seed=seed,
        )
        for kind, network in _SEARCHES.items()
        for seed in seeds
    }
    found = {key: one for key, one in found.items() if one is not None}
    best = min((min(one["solved"], one["curve"][-1][1]) for one in found.values()), default=inf)
    outcomes = []
    for (kind, seed), one in found.items():
        curve = [(evaluation, seconds / best) for evaluation, seconds in one["curve"]]
        hit = first_within(curve, WITHIN)
        outcomes.append(Outcome(family, seed, kind, hit, one["of"], curve[-1][1], curve))
    return outcomes


@dataclass(frozen=True, slots=True)
class Range:
    """What is known of a number that is not negative.

    Attributes:
        low: It is at least that; 0 = nothing is known.
        high: It is at most that; infinite = nothing is known.
    """

    low: float
    high: float

    def __str__(self) -> str:
        if self.low == self.high:
            return f"{self.low:.1f}"
        if self.high == inf:
            return f"> {self.low:.1f}" if self.low > 0 else "?"
        return f"{self.low:.1f} to {self.high:.1f}" if self.low > 0 else f"< {self.high:.1f}"

    def to_list(self) -> list[float | None]:
        """For JSON; ``None`` = not bounded."""
        return [self.low, None if self.high == inf else self.high]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two runs with the same model and seed.

    Attributes:
        within: Evaluations of the other policy over ours, until within 1 % of the best known.
        same_latency: The same until the best latency that the other found, or within 1 % if that was better.
    """

    model: str
    seed: int
    within: Range
    same_latency: Range


@dataclass(frozen=True, slots=True)
class Comparison:
    """All runs of two policies.

    Attributes:
        ours: The kind of run that the ratios are in favour of, where they are above 1.
        other: The kind that it is compared with.
    """

    ours: str
    other: str
    pairs: tuple[Pair, ...]

    def table(self) -> Table:
        """A row per model."""
        rows = []
        for model, pairs in self._by_model().items():
            within, same = ([getattr(pair, of) for pair in pairs] for of in ("within", "same_latency"))
            rows.append((model, ", ".join(map(str, within)), _median(within), _median(same)))
        title = f"evaluations of {self.other} over those of {self.ours}; > and < are bounds"
        return Table(
            title, ("model", "to within 1 %, by seed", "median", "to the same latency, median"), rows
        )

    def sentence(self) -> str:
        """The median of all pairs, and how much of it is bounds."""
        lower, upper, unknown = self._bounds()
        within, same = self._medians()
        return (
            f"evaluations, {self.other} / {self.ours}, {len(self.pairs)} pairs: median to within 1 % "
            f"{within} ({lower} of the pairs are lower bounds, {upper} upper bounds, {unknown} say nothing), "
            f"to the same latency {same}"
        )

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        lower, upper, unknown = self._bounds()
        within, same = self._medians()
        return {
            "within": within.to_list(),
            "same_latency": same.to_list(),
            "pairs": len(self.pairs),
            "lower_bounds": lower,
            "upper_bounds": upper,
            "unknown": unknown,
            "by_model": {
                model: _median([pair.within for pair in pairs]).to_list()
                for model, pairs in self._by_model().items()
            },
        }

    def _medians(self) -> tuple[Range, Range]:
        return _median([p.within for p in self.pairs]), _median([p.same_latency for p in self.pairs])

    def _by_model(self) -> dict[str, list[Pair]]:
        models = dict.fromkeys(pair.model for pair in self.pairs)
        return {model: [pair for pair in self.pairs if pair.model == model] for model in models}

    def _bounds(self) -> tuple[int, int, int]:
        within = [pair.within for pair in self.pairs]
        unknown = within.count(Range(0.0, inf))
        return (
            sum(r.high == inf for r in within) - unknown,
            sum(r.low == 0 and r.high < inf for r in within),
            unknown,
        )


def compare(outcomes: Sequence[Outcome], ours: str, other: str) -> Comparison:
    """Pair the runs of two kinds by model and seed.

    Args:
        outcomes: Of all kinds.
        ours: Whose evaluations are in the denominator.
        other: Whose are in the numerator.
    """
    known = {(o.model, o.seed, o.kind): o for o in outcomes}
    order = list(dict.fromkeys(o.model for o in outcomes))
    pairs = []
    for (model, seed, kind), mine in known.items():
        theirs = known.get((model, seed, other))
        if kind != ours or theirs is None:
            continue
        goal = max(WITHIN, theirs.curve[-1][1]) if theirs.curve else WITHIN
        within = _ratio(theirs.evaluations, theirs.of, mine.evaluations, mine.of)
        reached = first_within(theirs.curve, goal), theirs.of, first_within(mine.curve, goal), mine.of
        pairs.append(Pair(model, seed, within, _ratio(*reached)))
    return Comparison(
        ours, other, tuple(sorted(pairs, key=lambda pair: (order.index(pair.model), pair.seed)))
    )


def _ratio(theirs: int | None, their_all: int, ours: int | None, our_all: int) -> Range:
    """Evaluations of them over ours; ``None`` = did not get there with all of them."""
    low = 0.0 if ours is None else (their_all if theirs is None else theirs) / ours
    high = inf if theirs is None else theirs / max(our_all if ours is None else ours, 1)
    return Range(low, high)


def _median(ranges: Sequence[Range]) -> Range:
    """Where the median of the numbers lies: between those of the lower and of the upper ends."""
    if not ranges:
        return Range(0.0, inf)
    lows, highs = (np.sort([getattr(r, end) for r in ranges]) for end in ("low", "high"))
    middle = (len(ranges) - 1) // 2, len(ranges) // 2
    return Range(*(float(ends[middle[0]] + ends[middle[1]]) / 2 for ends in (lows, highs)))
