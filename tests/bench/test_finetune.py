"""What the fine-tuning benchmark makes of its runs, against numbers worked out by hand."""

from __future__ import annotations

from math import inf

import pytest

from sections.finetune import Range, compare
from sections.finetune_race import Outcome, first_within, improvements, outcome_table

OURS, SCRATCH = "pretrained", "hsdag"


def outcome(
    kind: str, seed: int, evaluations: int | None, of: int, model: str = "net", best: float = 1.0
) -> Outcome:
    """A run that was 30 % off at first, and at ``best`` when it had so many evaluations, or never."""
    curve = [(1, 1.3)] if evaluations is None else [(1, 1.3), (evaluations, best)]
    return Outcome(model, seed, kind, evaluations, of, curve[-1][1], curve)


def test_where_both_got_there_the_ratio_is_exact() -> None:
    found = compare([outcome(OURS, 0, 2, 9), outcome(SCRATCH, 0, 30, 40)], OURS, SCRATCH)

    (pair,) = found.pairs
    assert (pair.within, str(pair.within)) == (Range(15.0, 15.0), "15.0")
    assert (found.to_dict()["within"], found.to_dict()["lower_bounds"]) == ([15.0, 15.0], 0)


@pytest.mark.parametrize(
    ("ours", "scratch", "expected", "text", "counted"),
    [
        (2, None, Range(20.0, inf), "> 20.0", (1, 0, 0)),
        (None, 3, Range(0.0, 0.3), "< 0.3", (0, 1, 0)),
        (None, None, Range(0.0, inf), "?", (0, 0, 1)),
    ],
)
def test_who_never_got_there_gives_a_bound_and_two_of_them_give_nothing(
    ours: int | None, scratch: int | None, expected: Range, text: str, counted: tuple[int, int, int]
) -> None:
    found = compare([outcome(OURS, 0, ours, 10), outcome(SCRATCH, 0, scratch, 40)], OURS, SCRATCH)

    (pair,) = found.pairs
    assert (pair.within, str(pair.within)) == (expected, text)
    numbers = found.to_dict()
    assert (numbers["lower_bounds"], numbers["upper_bounds"], numbers["unknown"]) == counted


def test_a_median_is_no_more_certain_than_its_pairs() -> None:
    # Of 10, more than 20 and 4 the median is 10 whatever hides behind the bound; of 10, more than 5 and 4 it
    # is something between 5 and 10; of 10 and twice more than 20 it is more than 20.
    def median(*scratch: tuple[int | None, int]) -> list[float | None]:
        runs = [outcome(OURS, seed, 2, 9) for seed in range(len(scratch))]
        runs += [outcome(SCRATCH, seed, count, of) for seed, (count, of) in enumerate(scratch)]
        return compare(runs, OURS, SCRATCH).to_dict()["within"]

    assert median((20, 30), (None, 40), (8, 30)) == [10.0, 10.0]
    assert median((20, 30), (None, 10), (8, 30)) == [5.0, 10.0]
    assert median((20, 30), (None, 40), (None, 40)) == [20.0, None]
    assert median((20, 30), (None, 40)) == [15.0, None]  # half of 10 and of more than 20


def test_runs_are_paired_by_model_and_seed_and_the_others_are_left_out() -> None:
    runs = [
        outcome(OURS, 1, 1, 9, "b"),
        outcome(OURS, 0, 2, 9, "b"),
        outcome(OURS, 0, 5, 9, "a"),
        outcome(SCRATCH, 0, 10, 20, "b"),
        outcome(SCRATCH, 0, None, 20, "a"),
        outcome(SCRATCH, 2, 1, 20, "a"),
    ]
    found = compare(runs, OURS, SCRATCH)

    assert [(p.model, p.seed, p.within) for p in found.pairs] == [
        ("b", 0, Range(5.0, 5.0)),
        ("a", 0, Range(4.0, inf)),
    ]
    assert found.to_dict()["by_model"] == {"b": [5.0, 5.0], "a": [4.0, None]}
    assert [row[:3] for row in found.table().rows] == [("b", "5.0", "5.0"), ("a", "> 4.0", "> 4.0")]


def test_to_the_same_latency_counts_until_what_the_other_found_at_last() -> None:
    # From scratch it came to 1.2 with its 8th evaluation; the pretrained one was below that with its 2nd.
    scratch = Outcome("net", 0, SCRATCH, None, 40, 1.2, [(1, 1.5), (8, 1.2)])
    ours = Outcome("net", 0, OURS, 5, 9, 1.0, [(1, 1.4), (2, 1.1), (5, 1.0)])

    (pair,) = compare([ours, scratch], OURS, SCRATCH).pairs

    assert pair.same_latency == Range(4.0, 4.0)
    assert pair.within == Range(8.0, inf)


def test_improvements_are_where_a_value_is_lower_than_all_before() -> None:
    curve = improvements([inf, 3.0, 4.0, 2.0, 2.0, 1.005])
    assert curve == [(2, 3.0), (4, 2.0), (6, 1.005)]
    assert (first_within(curve, 1.01), first_within(curve, 1.0)) == (6, None)


def test_the_tables_mark_runs_that_never_got_there() -> None:
    runs = [outcome(OURS, seed, 2, 9) for seed in (0, 1)]
    runs += [outcome(SCRATCH, 0, None, 37), outcome(SCRATCH, 1, 31, 33)]
    found = compare(runs, OURS, SCRATCH)

    assert "> 37, 31" in [cell for row in outcome_table(runs, 40.0).rows for cell in row]
    assert found.table().rows[0][:2] == ("net", "> 18.5, 15.5")
    assert "1 of the pairs are lower bounds" in found.sentence()
    assert found.to_dict()["within"] == [17.0, None]
