"""How many times more evaluations one policy needs than another, and how much of that is known.

Whoever did not get there needs more evaluations than it had, nobody knows how many. So a ratio of two runs is
a range: where the policy that is compared with did not get there, it is more than its evaluations over ours;
where ours did not, less than the other's over ours; where neither did, anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from finetune_outcome import WITHIN, Outcome, first_within

__all__ = ["Comparison", "Pair", "Range", "compare"]


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

    def table(self) -> tuple[str, tuple[str, ...], list[tuple[str, ...]]]:
        """Title, columns and a row per model."""
        rows = []
        for model in dict.fromkeys(pair.model for pair in self.pairs):
            own = [pair.within for pair in self.pairs if pair.model == model]
            same = [pair.same_latency for pair in self.pairs if pair.model == model]
            rows.append((model, ", ".join(map(str, own)), *map(str, (_median(own), _median(same)))))
        title = f"evaluations of {self.other} over those of {self.ours}; > and < are bounds"
        return title, ("model", "to within 1 %, by seed", "median", "to the same latency, median"), rows

    def sentence(self) -> str:
        """The median of all pairs, and how much of it is bounds."""
        lower, upper, unknown = self._bounds()
        within = _median([pair.within for pair in self.pairs])
        same_latency = _median([pair.same_latency for pair in self.pairs])
        return (
            f"evaluations, {self.other} / {self.ours}, {len(self.pairs)} pairs: "
            f"median to within 1 % {within} ({lower} of the pairs are lower bounds, {upper} upper bounds, "
            f"{unknown} say nothing), to the same latency {same_latency}"
        )

    def to_dict(self) -> dict[str, Any]:
        """For JSON; ``None`` = not bounded."""
        lower, upper, unknown = self._bounds()
        return {
            "within": _to_list(_median([pair.within for pair in self.pairs])),
            "same_latency": _to_list(_median([pair.same_latency for pair in self.pairs])),
            "pairs": len(self.pairs),
            "lower_bounds": lower,
            "upper_bounds": upper,
            "unknown": unknown,
            "by_model": {
                model: _to_list(_median([pair.within for pair in self.pairs if pair.model == model]))
                for model in dict.fromkeys(pair.model for pair in self.pairs)
            },
        }

    def _bounds(self) -> tuple[int, int, int]:
        lower = sum(pair.within.high == inf and pair.within.low > 0 for pair in self.pairs)
        upper = sum(pair.within.low == 0 and pair.within.high < inf for pair in self.pairs)
        unknown = sum(pair.within == Range(0.0, inf) for pair in self.pairs)
        return lower, upper, unknown


def compare(outcomes: Sequence[Outcome], ours: str, other: str) -> Comparison:
    """Pair the runs of two kinds by model and seed.

    Args:
        outcomes: Of all kinds.
        ours: Whose evaluations are in the denominator.
        other: Whose are in the numerator.
    """
    known = {(o.model, o.seed, o.kind): o for o in outcomes}
    pairs = []
    for (model, seed, kind), mine in sorted(known.items(), key=lambda item: item[0][1]):
        theirs = known.get((model, seed, other))
        if kind != ours or theirs is None:
            continue
        goal = max(WITHIN, theirs.curve[-1][1]) if theirs.curve else WITHIN
        pairs.append(
            Pair(
                model,
                seed,
                _ratio(theirs.evaluations, theirs.of, mine.evaluations, mine.of),
                _ratio(first_within(theirs.curve, goal), theirs.of, first_within(mine.curve, goal), mine.of),
            )
        )
    order = list(dict.fromkeys(o.model for o in outcomes))
    return Comparison(ours, other, tuple(sorted(pairs, key=lambda pair: order.index(pair.model))))


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


def _to_list(found: Range) -> list[float | None]:
    return [found.low, None if found.high == inf else found.high]
