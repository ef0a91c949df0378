"""``ov-autoplace collect``: models of the user, measured into one file."""

from __future__ import annotations

from pathlib import Path

import pytest

from collected import collect_little
from command_line import Command
from ov_autoplace.cost.samples import CostSamples


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing takes long."""
    collect_little(monkeypatch)


def test_a_model_is_measured_once(cli: Command, small_ir: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "here.npz"
    first, again = (
        cli("collect", small_ir, "-o", out, "-d", "CPU", "--label", "plain", "--json").json() for _ in "12"
    )
    assert first == again
    assert (first["networks"], first["measurements"]) == (1, len(first["settings"]))
    assert all("plain" in name for name in first["settings"])
    (network,) = CostSamples.load(out).networks
    assert network.family == small_ir.stem


def test_nothing_is_written_where_a_model_is_missing_or_is_the_output(
    cli: Command, small_ir: Path, tmp_path: Path
) -> None:
    before = sorted(path.name for path in tmp_path.iterdir())
    for models, out, sentence in (
        ((small_ir, tmp_path / "none.xml"), tmp_path / "here.npz", "none.xml"),
        ((small_ir,), small_ir, "belongs to what is read"),
    ):
        outcome = cli("collect", *models, "-o", out, "-d", "CPU")
        assert outcome.code == 2
        assert sentence in outcome.err
    assert sorted(path.name for path in tmp_path.iterdir()) == before
