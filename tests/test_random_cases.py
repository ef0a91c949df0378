"""Which random cases are tried."""

from __future__ import annotations

from pathlib import Path

import pytest

from random_cases import spread
from test_optional_packages import pytest_in_a_bare_environment

SAMPLE = "import pytest\n@pytest.mark.seeds(100, 400, cost=2)\ndef test_it(seed):\n    pass\n"


@pytest.mark.parametrize(
    ("wanted", "cost", "expected"),
    [(4, 1, [100, 101, 103, 104]), (7, 2, [100, 102, 104]), (30, 1, [*range(100, 106)]), (1, 9, [100])],
)
def test_seeds_are_spread_evenly_and_dear_cases_are_fewer(wanted, cost, expected):
    assert spread(range(100, 106), wanted, cost) == expected
    assert spread(range(100, 106), None, cost) == [*range(100, 106)]


@pytest.mark.parametrize(("seeds", "count"), [(("--seeds", "all"), 300), (("--seeds", "8"), 4), ((), 15)])
def test_the_option_says_how_many_cases_are_collected(
    tmp_path: Path, seeds: tuple[str, ...], count: int
) -> None:
    (tmp_path / "test_sample.py").write_text(SAMPLE)
    result = pytest_in_a_bare_environment(
        str(tmp_path), "-c", "pyproject.toml", "-p", "random_cases", "--collect-only", *seeds, absent=[]
    )
    assert result.stdout.count("::test_it[") == count, result.stdout + result.stderr


@pytest.mark.parametrize("wrong", ["0", "many", "-3"])
def test_what_is_no_number_of_cases_is_refused(wrong: str) -> None:
    result = pytest_in_a_bare_environment("--collect-only", "--seeds", wrong, absent=[])
    assert result.returncode == pytest.ExitCode.USAGE_ERROR
    assert repr(wrong) in result.stderr
