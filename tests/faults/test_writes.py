"""A kill, or a full disk, at any write: never half a file, and the next run succeeds."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.injection import EVERYTHING, Faults, compile_library, moments
from ov_autoplace.cost.learned import CostNetwork
from ov_autoplace.cost.target_json import load_target
from ov_autoplace.errors import CheckpointError
from ov_autoplace.plan.placement import Placement
from ov_autoplace.plugin.decision_cache import DecisionCache
from ov_autoplace.policy.card import load_card, read_weights

SCENARIOS = [
    pytest.param("annotate", 2),  # the first write and the last
    pytest.param("cache", 2),
    pytest.param("tuned_checkpoint", 2, marks=pytest.mark.torch),
]
if EVERYTHING:  # these take minutes
    SCENARIOS += [
        pytest.param("profile", 1),
        pytest.param("calibrate", 1),
        pytest.param("pretrain", 2, marks=pytest.mark.torch),
    ]


@pytest.fixture(scope="module")
def faults(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Faults]:
    folder = tmp_path_factory.mktemp("faults")
    library = compile_library(folder)
    if library is None:
        pytest.skip("there is no C compiler to build the library that fails writes")
    with Faults(library, folder) as server:
        yield server


@pytest.mark.parametrize(("scenario", "most"), SCENARIOS)
@pytest.mark.parametrize("kind", ["k", "f"], ids=["kill", "full-disk"])
def test_whatever_write_fails_nothing_is_half_written_and_the_next_run_succeeds(faults, scenario, most, kind):
    _begin(faults, scenario)
    whole = faults.run(scenario)
    assert whole.status == 0, whole.output
    assert whole.changes > 3
    for at in moments(whole.changes, most):
        _begin(faults, scenario)
        left = faults.run(scenario, kind, at)
        if kind == "k":
            # A run that happens to write less ends before it is killed.
            assert left.status == -9 or (left.status == 0 and left.changes < at), (at, left)
        else:
            assert left.status in (0, 1, 2), (at, left)
            assert left.status == 0 or _is_one_sentence(left.output), (at, left)
            assert not faults.leftovers(), at
        _check(faults, scenario, at)
        again = faults.run(scenario)
        assert again.status == 0, (at, again.output)
        assert not faults.leftovers(), at
        _check(faults, scenario, at)


def _begin(faults: Faults, scenario: str) -> None:
    """An empty folder, or one that holds an older answer."""
    older = faults.given.with_name("older")
    faults.empty()
    if scenario == "annotate":
        if not older.exists():
            assert faults.run("older_annotation").status == 0
            shutil.copytree(faults.root / "out", older)
        shutil.copytree(older, faults.root / "out", dirs_exist_ok=True)


def _is_one_sentence(output: str) -> bool:
    # What is only kept for the next time costs a warning.
    said = "error: " in output or output.startswith("the decision is not kept: ")
    return said and "Traceback" not in output


def _check(faults: Faults, scenario: str, at: int) -> None:
    """Readers accept what is there, or say that nothing is."""
    {
        "annotate": _check_pair,
        "cache": _check_cache,
        "calibrate": _check_target,
        "tuned_checkpoint": _check_checkpoint,
        "pretrain": _check_costs,
        "profile": lambda faults: None,
    }[scenario](faults)


def _check_pair(faults: Faults) -> None:
    """The model and its weights, and the affinities beside, are of one generation; or there is no model."""
    folder = faults.root / "out"
    affinities = folder / "net1.affinity.json"
    devices = set(json.loads(affinities.read_text()).values()) if affinities.exists() else set()
    xml = folder / "net1.autoplace.xml"
    if not xml.exists():
        return
    generation = int('value="XCPU"' in xml.read_text())
    assert xml.with_suffix(".bin").read_bytes() == (faults.given / f"net{generation}.bin").read_bytes()
    assert devices == {("CPU", "XCPU")[generation]}


def _check_cache(faults: Faults) -> None:
    wanted = Placement.load(faults.given / "1.json")
    entry = DecisionCache(faults.root / "cache" / "autoplace-0.json", wanted.devices)
    found = entry.load(wanted.names)
    assert found is None or found.plan.to_json() == wanted.plan.to_json()


def _check_target(faults: Faults) -> None:
    path = faults.root / "here.json"
    assert not path.exists() or load_target(path).device_names == ("CPU",)


def _check_checkpoint(faults: Faults) -> None:
    folder: Path = faults.root / "tuned"
    if (folder / "card.json").exists():
        assert read_weights(load_card(folder))
        assert (folder / "state.safetensors").exists()
    elif folder.exists():
        with pytest.raises(CheckpointError):
            load_card(folder)


def _check_costs(faults: Faults) -> None:
    path = faults.root / "trained" / "costs.npz"
    assert not path.exists() or CostNetwork.load(path).about["networks"]
