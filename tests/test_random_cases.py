"""Which random cases are tried."""

from __future__ import annotations

from pathlib import Path

import pytest

from random_cases import spread
from test_optional_packages import pytest_in_a_bare_environment

SAMPLE = "import pytest\n@pytest.mark.seeds(100, 400, cost=2)\ndef test_it(seed):\n    pass\n"


@pytest.mark.parametrize(
    ("wanted", "cost", "count"),
    [(30, 1, 30), (30, 3, 10), (30, 20, 1), (1, 9, 1), (400, 1, 300), (None, 9, 300)],
)
def test_seeds_are_spread_over_all_and_dear_cases_are_fewer(wanted, cost, count):
    chosen = spread(range(100, 400), wanted, cost)
    assert [int(count * (seed - 100) / 300) for seed in chosen] == [*range(count)]  # one of each part
    for modulus in (2, 3, 5):
        assert len({seed % modulus for seed in chosen}) == min(modulus, count)


@pytest.mark.parametrize(("seeds", "count"), [(("--seeds", "all"), 300), ((), 15)])
def test_the_option_says_how_many_cases_are_collected(
    tmp_path: Path, seeds: tuple[str, ...], count: int
) -> None:
    (tmp_path / "test_sample.py").write_text(SAMPLE)
    result = pytest_in_a_bare_environment(
        str(tmp_path), "-c", "pyproject.toml", "-p", "random_cases", "--collect-only", *seeds, absent=[]
    )
    assert result.stdout.count("::test_it[") == count, result.stdout + result.stderr


@pytest.mark.parametrize("wrong", ["0", "many", "-3"])
def test_what_is_no_number_of_cases_is_refused(pytestconfig: pytest.Config, wrong: str) -> None:
    with pytest.raises(pytest.UsageError, match=f"'{wrong}' is neither a number above 0 nor all"):
        pytestconfig._parser.parse(["--seeds", wrong])
