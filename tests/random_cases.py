"""How many random cases are tried: ``--seeds N`` of each test, or ``--seeds all``; a plugin of all tests.

A test of random cases takes ``seed`` and names all its seeds as ``range`` takes them:
``@pytest.mark.seeds(500)``. One that takes one of many networks names the argument, too:
``@pytest.mark.seeds(NAMES, argument="name")``. N of them are run, spread over all. Where a case costs more
than some hundredths of a second, ``cost=5`` says that it counts as five, so that N / 5 are run.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TypeVar

import pytest

_Case = TypeVar("_Case")

USUALLY = 30
_GOLDEN = (5**0.5 - 1) / 2


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--seeds",
        type=_count,
        default=USUALLY,
        metavar="N|all",
        help=f"how many random cases of each test are tried, or all ({USUALLY}; fewer where one takes long)",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "seeds(start, stop, cost=1): the values of `seed`; a case counts as `cost` of --seeds N. "
        "seeds(values, argument=NAME): those of another argument",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    marker = metafunc.definition.get_closest_marker("seeds")
    if marker is not None:
        wanted = metafunc.config.getoption("--seeds")
        of, cost = marker.kwargs.get("argument", "seed"), marker.kwargs.get("cost", 1)
        every = range(*marker.args) if of == "seed" else marker.args[0]
        metafunc.parametrize(of, spread(every, wanted, cost))


def spread(seeds: Sequence[_Case], wanted: int | None, cost: int = 1) -> list[_Case]:
    """Those of ``seeds`` that are run: ``wanted / cost`` of them, at least one; ``None`` = all."""
    count = len(seeds) if wanted is None else min(max(1, wanted // cost), len(seeds))
    parts = [range(i * len(seeds) // count, (i + 1) * len(seeds) // count) for i in range(count)]
    # One of each part, each time elsewhere: at equal distances all would be even, or multiples of three.
    return [seeds[part[int(i * _GOLDEN % 1 * len(part))]] for i, part in enumerate(parts)]


def _count(text: str) -> int | None:
    if text == "all":
        return None
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number above 0 nor all")
    return int(text)
