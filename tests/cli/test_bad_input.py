"""Every kind of bad input: exit code 2, one sentence that names the culprit, nothing half-written."""

from __future__ import annotations

import json
import resource
from collections.abc import Callable
from pathlib import Path

import openvino as ov
import pytest
from refusals import DEVICES, FAST, assert_refused, files_in, in_child

from command_line import Command, Outcome, two_layers
from ov_autoplace.cli.outputs import made_folder
from ov_autoplace.errors import OutputError


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["annotate"], ["MODEL", "see ov-autoplace annotate --help"]),
        (["annotate", "x.xml", "--mode", "psychic"], ["--mode", "'psychic'", "'zero-shot'"]),
        (["annotate", "x.xml", "--seed", "many"], ["--seed", "'many'", "see ov-autoplace annotate --help"]),
        (["bench", "x.xml", "--seconds", "0"], ["--seconds", "0.1"]),
        (["annotate", "x.xml", "--devise", "CPU"], ["--devise", "--devices"]),
        (["cache"], ["ls", "rm", "verify"]),
        (["anotate", "x.xml"], ["'anotate'", "'annotate'", "see ov-autoplace --help"]),
    ],
)
def test_a_usage_error_is_a_sentence_with_the_value_and_the_way_to_help(
    cli: Command, arguments: list[str], words: list[str]
) -> None:
    assert_refused(cli(*arguments), *words)
    failure = cli(*arguments, "--json")
    assert failure.code == 2
    assert all(word in json.loads(failure.out)["error"] for word in words)


def test_without_a_command_the_help_is_shown(cli: Command) -> None:
    outcome = cli()
    assert outcome.code == 2
    assert "annotate" in outcome.out + outcome.err
    assert "error" not in outcome.err


@pytest.mark.parametrize("command", ["annotate", "explain"])
@pytest.mark.parametrize("name", ["page.pdf", "page", "page.xml", "page.json"])
def test_a_report_is_what_its_name_says(
    cli: Command, small_ir: Path, tmp_path: Path, command: str, name: str
) -> None:
    page = tmp_path / name

    assert_refused(cli(command, small_ir, *FAST, "--report", page), page, "name it page.html")
    assert not page.exists()


def test_an_assumed_shape_is_said_once_with_the_option_that_gives_it(cli: Command, tmp_path: Path) -> None:
    path = tmp_path / "dynamic.xml"
    ov.save_model(two_layers(ov.PartialShape([-1, 3, 16, 16])), path)

    outcome = cli("annotate", path, "-d", "CPU", "--time-budget-ms", "1")

    assert outcome.code == 0, outcome.err
    said = " ".join(outcome.err.split())
    assert said.count("has no static shape") == 1
    assert "--shape" in said


@pytest.mark.parametrize(
    "devices", ["FOO", "CPU,FOO", "xcpu", "CPU,,XCPU", "CPU,CPU", "AUTO", "HETERO:CPU", "CPU.7"]
)
def test_devices_that_are_not_there_are_refused(cli: Command, small_ir: Path, devices: str) -> None:
    before = files_in(small_ir.parent)

    assert_refused(cli("annotate", small_ir, "-d", devices, "--mode", "zero-shot"))
    assert files_in(small_ir.parent) == before


@pytest.mark.parametrize("command", ["annotate", "explain", "bench"])
@pytest.mark.parametrize("folder", [".", "..", "/"])
def test_a_folder_is_no_model(
    cli: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, folder: str
) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "notes.txt").write_text("no model")
    monkeypatch.chdir(tmp_path / "here")

    assert_refused(cli(command, folder, *FAST), folder, "is a folder", "saved_model.pb")


def test_an_extra_device_that_does_not_parse_is_refused(
    cli: Command, small_ir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUTOPLACE_EXTRA_DEVICES", "XCPU")

    assert_refused(cli("devices"), "AUTOPLACE_EXTRA_DEVICES", "XCPU")


def affinities(small_ir: Path) -> dict[str, str]:
    return {op.get_friendly_name(): "CPU" for op in ov.Core().read_model(small_ir).get_ops()}


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (lambda full: {**full, "ghost": "CPU"}, "'ghost'"),
        (lambda full: {k: v for k, v in full.items() if k != "relu"}, "'relu'"),
        (lambda full: {**full, "relu": "FPGA"}, "'FPGA'"),
        (lambda full: [full], "given.json"),
    ],
    ids=["unknown op", "missing op", "unknown device", "list"],
)
def test_an_affinity_file_that_does_not_fit_is_refused(
    cli: Command, small_ir: Path, tmp_path: Path, content: Callable[[dict[str, str]], object], word: str
) -> None:
    path = tmp_path / "given.json"
    path.write_text(json.dumps(content(affinities(small_ir))))
    before = files_in(small_ir.parent)

    assert_refused(cli("annotate", small_ir, *DEVICES, "--affinity", path), word)
    assert files_in(small_ir.parent) == before


def test_a_folder_that_cannot_be_written_is_refused_before_the_search(
    cli: Command, small_ir: Path, tmp_path: Path
) -> None:
    a_file = tmp_path / "file"
    a_file.write_text("")
    before = files_in(tmp_path)
    # /proc refuses new files even to the superuser, whom permissions do not stop.
    for culprit in (a_file, Path("/proc")):
        for folder in (culprit, culprit / "new" / "newer"):
            assert_refused(cli("annotate", small_ir, *FAST, "-o", folder), culprit)
            for command in ("annotate", "bench", "explain"):
                assert_refused(cli(command, small_ir, *FAST, "--trace", folder / "trace.json"), culprit)
            assert_refused(cli("calibrate", *DEVICES, "-o", folder / "target.json"), culprit)
    assert files_in(tmp_path) == before


def test_names_that_cannot_be_those_of_the_annotated_model_are_refused(
    cli: Command, small_ir: Path, tmp_path: Path
) -> None:
    folder, linked = tmp_path / "folder.xml", tmp_path / "linked.xml"
    folder.mkdir()
    linked.symlink_to(small_ir)
    weights = tmp_path / "weights.xml"
    weights.with_suffix(".bin").hardlink_to(small_ir.with_suffix(".bin"))
    before = files_in(tmp_path)
    refused = {
        folder: "name of a file",
        small_ir: "belongs to what is read",
        linked: "belongs to what is read",
        weights: "weights.bin",
        Path("/proc/out.xml"): "/proc",
        small_ir / "out.xml": str(small_ir),
        tmp_path / "out.json": "name of a folder",
        tmp_path / "out.onnx": "name of a folder",
    }
    for output, word in refused.items():
        assert_refused(cli("annotate", small_ir, *FAST, "-o", output), word)
    assert files_in(tmp_path) == before


def test_outputs_that_would_take_the_place_of_a_file_are_refused(
    cli: Command, small_ir: Path, tmp_path: Path
) -> None:
    before, page = files_in(tmp_path), tmp_path / "page"
    for command in ("annotate", "explain", "bench"):
        for model_file in (small_ir, small_ir.with_suffix(".bin")):
            assert_refused(cli(command, small_ir, *FAST, "--trace", model_file), "what is read")
        both = ("--trace", page, "--report", tmp_path / "." / "page")
        assert_refused(cli(command, small_ir, *FAST, *both), "two outputs have this name")
    out = tmp_path / "out.xml"
    assert_refused(cli("annotate", small_ir, *FAST, "-o", out, "--trace", out), "two outputs")
    assert_refused(cli("finetune", small_ir, *DEVICES, "--report", small_ir), "what is read")
    assert_refused(cli("finetune", small_ir, *DEVICES, "-o", tmp_path / "tuned.json"), "name of a folder")
    assert files_in(tmp_path) == before


def test_a_request_that_fails_makes_no_folder(cli: Command, small_ir: Path, tmp_path: Path) -> None:
    out = tmp_path / "a" / "b"
    assert_refused(cli("annotate", small_ir, *FAST, "--pin", "ghost*=CPU", "-o", out), "ghost*")
    assert not (tmp_path / "a").exists()


def test_what_fails_while_it_is_written_takes_the_folders_that_it_made_away(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    made = tmp_path / "old" / "a" / "b"

    def write() -> None:
        with made_folder(made):
            assert made.is_dir()
            raise OutputError("the disk is full")

    with pytest.raises(OutputError, match="full"):
        write()
    assert list((tmp_path / "old").iterdir()) == []


def test_a_full_disk_leaves_nothing_behind(small_ir: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    size = small_ir.with_suffix(".bin").stat().st_size

    def no_space() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, size // 2))

    done = in_child("annotate", small_ir, *FAST, "-o", folder, before=no_space, PYTHONDONTWRITEBYTECODE="1")

    assert_refused(Outcome(done.returncode, done.stdout, done.stderr), folder)
    assert files_in(folder) == {}


def test_a_target_of_another_schema_is_refused(cli: Command, small_ir: Path, tmp_path: Path) -> None:
    path = tmp_path / "target.json"
    path.write_text(json.dumps({"schema": "somebody-elses/7", "devices": []}))

    assert_refused(cli("annotate", small_ir, "--mode", "zero-shot", "--target", path), path)
    assert_refused(cli("devices", "--target", path), path)


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--config", '{"AUTOPLACE_MODUS": "TUNE"}', ["AUTOPLACE_MODE"]),
        ("--config", '{"AUTOPLACE_TIME_BUDGET_MS": -1}', ["AUTOPLACE_TIME_BUDGET_MS"]),
        ("--config", "{broken", ["--config"]),
        ("--config", "/no/such/file.json", ["/no/such/file.json"]),
        ("--config", "PERF=1", ["'PERF=1'", "JSON object", "file"]),
        ("--pin", "nothing-like-this*=CPU", ["nothing-like-this*"]),
        ("--pin", "relu=FPGA", ["FPGA"]),
        ("--pin", "relu", ["--pin 'relu'", "PATTERN=DEVICE"]),
        ("--memory-limit", "CPU=much", ["--memory-limit of CPU is 'much'"]),
        ("--memory-limit", "CPU", ["'CPU'", "DEVICE=SIZE"]),
        ("--memory-limit", "FPGA=1GB", ["FPGA"]),
        ("--time-budget-ms", "-5", ["--time-budget-ms is -5.0"]),
        ("--seed", "-1", ["--seed is -1"]),
        ("--solvers", "portfolio,gredy", ["--solvers names 'gredy'; did you mean greedy"]),
        ("--shape", "image=1,,16,16", ["--shape"]),
        ("--target", "abacus", ["'abacus'"]),
        ("--op", "ghost*", ["'ghost*'"]),
        ("--trace", "", ["name of a file"]),
    ],
)
def test_an_option_with_a_bad_value_is_named(
    cli: Command, small_ir: Path, option: str, value: str, words: list[str]
) -> None:
    before = files_in(small_ir.parent)
    value = value or str(small_ir.parent)  # a folder

    assert_refused(cli("explain" if option == "--op" else "annotate", small_ir, *FAST, option, value), *words)
    assert files_in(small_ir.parent) == before


def test_names_of_ops_are_not_taken_for_markup(cli: Command, tmp_path: Path) -> None:
    loud = two_layers([1, 3, 16, 16])
    for op in loud.get_ops():
        if op.get_friendly_name() == "second":
            op.set_friendly_name("[bold red]boo[/] [/nonsense]")
    path = tmp_path / "loud.xml"
    ov.save_model(loud, path, compress_to_fp16=False)

    outcome = cli("explain", path, *FAST)

    assert outcome.code == 0, outcome.err
    assert "[bold red]boo[/] [/nonsense]" in outcome.out


def test_a_failure_nobody_foresaw_is_one_sentence_and_exit_code_1(
    cli: Command, fail_with: Callable[[BaseException], None]
) -> None:
    fail_with(KeyError("the unforeseen"))

    plain, debugged = cli("fail"), cli("--debug", "fail")

    assert plain.code == debugged.code == 1
    assert "the unforeseen" in plain.err
    assert "--debug" in plain.err
    assert "Traceback" not in plain.err
    assert "Traceback" in debugged.err
