"""Names and files may hold anything: what a terminal would obey never reaches it, and no reader chokes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import openvino as ov
import openvino.opset13 as ops
import pytest

from command_line import Command
from ov_autoplace._base.json_fields import parse_json, read_json
from ov_autoplace._base.text import (
    bytes_text,
    counted,
    milliseconds,
    nearest,
    nearest_device,
    no_such_device,
    printable,
)
from ov_autoplace.decide.options import PlacerOptions
from ov_autoplace.errors import AutoplaceError, ModelError, PlacementError
from ov_autoplace.measure.node_counts import count_nodes
from ov_autoplace.measure.session import ProfilingSession
from ov_autoplace.plan.annotation import annotated_placement
from ov_autoplace.plan.fitting import count_subgraphs
from ov_autoplace.plan.placement import Placement
from ov_autoplace.plan.plan import SplitPlan
from ov_autoplace.plugin.annotated_files import save_annotated
from places import CPU_PLUGIN

NAMES = (
    "subgraph99999999999999999999: a",
    "subgraph7: b",
    "one,two",
    "one",
    ",",
    "\x1b[31mred\x07",
    "\x9b2J",
    "\x7f",
    "\u202egnp.exe",
    "<&\"'>",
    "two\nlines\r\ttab",
    "\U0001f600",
    "  ",
    "[bold]markup[/]",
)
CONTROLS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]")


def odd_model() -> ov.Model:
    x = ops.parameter([1, 64], np.float32, name="x")
    value = x
    for name in NAMES:
        value = ops.softmax(value, 1)
        value.set_friendly_name(name)
    return ov.Model([ops.result(value, name="y")], [x], "odd")


def in_thirds(model: ov.Model) -> dict[str, str]:
    names = [op.get_friendly_name() for op in model.get_ordered_ops()]
    return {name: ("XCPU", "CPU")[i // 5 % 2] for i, name in enumerate(names)}


@pytest.fixture
def core() -> ov.Core:
    core = ov.Core()
    core.register_plugin(str(CPU_PLUGIN), "XCPU")
    return core


def test_nodes_are_told_by_any_name_on_a_device_and_under_hetero(core: ov.Core) -> None:
    model = odd_model()
    with ProfilingSession(core, model, ("CPU", "XCPU")) as session:
        alone = count_nodes(session.compile_device("CPU", count_nodes=True), 0.01, 2, 3)
        parted = count_nodes(
            session.compile_split(SplitPlan.of(in_thirds(model)), count_nodes=True), 0.01, 2, 3
        )
    assert {node.subgraph for node in alone.nodes} == {0}
    assert set(NAMES) <= {name for node in alone.nodes for name in node.original_names}
    found = {name: node.subgraph for node in parted.nodes for name in node.original_names}
    # x and four ops, five ops, five ops and the result
    assert [found[name] for name in NAMES] == [0] * 4 + [1] * 5 + [2] * 5


def test_any_name_goes_through_both_files_and_back(core: ov.Core, tmp_path: Path) -> None:
    model = odd_model()
    placement = Placement.from_dict(in_thirds(model))
    files = save_annotated(model, placement, tmp_path, "odd")
    assert Placement.load(files.affinities).to_dict() == placement.to_dict()
    again = core.read_model(files.model)
    assert annotated_placement(again).to_dict() == placement.to_dict()
    assert count_subgraphs(again, Placement.load(files.affinities)) == 3


@pytest.mark.parametrize("command", ["annotate", "explain", "bench"])
def test_no_command_sends_a_terminal_what_it_would_obey(cli: Command, tmp_path: Path, command: str) -> None:
    ov.save_model(odd_model(), tmp_path / "odd.xml", compress_to_fp16=False)
    quick = ("--time-budget-ms", "20", "--mode", "zero-shot")
    if command == "bench":
        quick = ("--mode", "zero-shot", "--seconds", "0.1")
    outcome = cli(command, tmp_path / "odd.xml", "-d", "XCPU,CPU", *quick)
    assert outcome.code == 0, outcome.err
    assert not CONTROLS.search(outcome.out + outcome.err)
    as_json = cli(command, tmp_path / "odd.xml", "-d", "XCPU,CPU", *quick, "--json")
    assert not CONTROLS.search(as_json.out)
    assert json.loads(as_json.out)


def test_errors_and_refusals_quote_names_in_a_form_that_can_be_shown(cli: Command, tmp_path: Path) -> None:
    assert str(ModelError("op \x1b[2J\x9b")) == "op \\x1b[2J\\x9b"
    ov.save_model(odd_model(), tmp_path / "odd.xml", compress_to_fp16=False)
    (tmp_path / "a.json").write_text(json.dumps({"\x1b[2J": "\x9bCPU"}))
    outcome = cli("annotate", tmp_path / "odd.xml", "-d", "XCPU,CPU", "--affinity", tmp_path / "a.json")
    assert outcome.code == 2
    assert not CONTROLS.search(outcome.out + outcome.err)


LONE = '{"\\ud800": "CPU"}', '{"x": "\\udfffCPU"}', '{"x": {"y": ["\\uD801"]}}'


@pytest.mark.parametrize("text", LONE)
def test_the_lone_half_of_a_surrogate_pair_is_one_sentence_of_every_reader(tmp_path: Path, text: str) -> None:
    path = tmp_path / "file.json"
    path.write_text(text)
    with pytest.raises(AutoplaceError, match="lone half of a surrogate pair"):
        read_json(path, AutoplaceError, "a file")
    with pytest.raises(PlacementError, match="lone half of a surrogate pair"):
        Placement.load(path)
    with pytest.raises(AutoplaceError, match="lone half of a surrogate pair"):
        PlacerOptions.from_arguments({"pins": text})


def test_lone_halves_from_python_are_refused_too_and_whole_pairs_are_kept() -> None:
    with pytest.raises(PlacementError, match="lone half"):
        Placement.from_dict({"x": "\ud800"})
    assert parse_json('{"\\ud83d\\ude00": "\\\\ud800"}') == {"\U0001f600": "\\ud800"}


def test_text_for_people_keeps_what_can_be_shown() -> None:
    assert printable("Größe\n\t日本 \U0001f600") == "Größe\n\t日本 \U0001f600"
    assert printable("\x00\x1b\x7f\x9b\u2028\ud800") == "\\x00\\x1b\\x7f\\x9b\\u2028\\ud800"


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 ops"), (1, "1 op"), (2, "2 ops"), (1009, "1,009 ops")], ids=str
)
def test_a_noun_agrees_with_its_number(number: int, text: str) -> None:
    assert counted(number, "op") == text


def test_a_noun_with_a_plural_of_its_own_keeps_it() -> None:
    assert [counted(n, "copy", "copies") for n in (1, 2)] == ["1 copy", "2 copies"]


def test_only_what_is_like_a_name_is_taken_for_its_misspelling() -> None:
    known = ["zero-shot", "profile", "tune"]
    assert [nearest(name, known) for name in ("profiel", "PROFILE", "zeroshot")] == [
        "profile",
        "profile",
        "zero-shot",
    ]
    assert [nearest(name, known) for name in ("fast", "psychic", "")] == [None, None, None]


def test_another_device_is_no_misspelling_of_one() -> None:
    here = ["CPU", "XCPU"]
    assert [nearest_device(name, here) for name in ("cpu", "CUP", "xcpu")] == ["CPU", "CPU", "XCPU"]
    assert [nearest_device(name, here) for name in ("GPU", "NPU", "GPU.0", "")] == [None] * 4
    assert no_such_device("GPU", here) == "there is no device 'GPU' here; available: CPU, XCPU"
    assert "did you mean 'CPU'?" in no_such_device("cpu", here)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (1.2345, "1234.500"),
        (1.5e-4, "0.150"),
        (7.04e-6, "0.0070"),
        (6.96e-6, "0.0070"),
        (7.1e-6, "0.0071"),
        (0.0, "0.000"),
    ],
)
def test_times_of_small_models_have_a_decimal_more(seconds: float, shown: str) -> None:
    assert milliseconds(seconds) == shown


def test_changes_have_signs_but_nothing_has_none() -> None:
    assert milliseconds(5e-6, "+") == "+0.0050"
    assert milliseconds(-2e-3, "+") == "-2.000"
    assert milliseconds(-1e-9, "+") == milliseconds(1e-9, "+") == "0.0000"
    assert milliseconds(2e-6, like=3e-3) == "0.002"


def test_sizes_have_binary_units() -> None:
    sizes = (864, 1024, 47_411, 2**20, 3 * 2**40)
    assert list(map(bytes_text, sizes)) == ["864 B", "1.0 KiB", "46.3 KiB", "1.0 MiB", "3072.0 GiB"]
