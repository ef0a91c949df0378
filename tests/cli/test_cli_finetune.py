"""``ov-autoplace finetune`` on real devices: what it writes and says, and how it ends early."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import openvino as ov
import pytest

from command_line import EXTRA_DEVICES, Command
from ov_autoplace.plan.placement import Placement
from ov_autoplace.training import finetune as tuning

DEVICES = ("-d", "XCPU,CPU")
# Models are done when the policy has nothing new once; the budget is there for machines that are very slow.
UNTIL_SURE = ("--budget", "10m", "--patience", "1", "--hottest", "1")
QUICK = (*DEVICES, *UNTIL_SURE, "--inferences", "6", "--simulated-updates", "1")


@pytest.mark.torch
def test_the_report_describes_the_folder_and_annotate_takes_the_best_placement(
    cli: Command, small_ir: Path, tmp_path: Path
) -> None:
    out = tmp_path / "new" / "tuned"
    report = cli("finetune", small_ir, *QUICK, "-o", out, "--json").json()

    (model,) = report["models"]
    assert report["stopped"] in ("nothing new", "budget")
    assert (model["model"], model["devices"]) == ("net", ["XCPU", "CPU"])
    assert model["best_single"] in ("XCPU", "CPU")
    assert model["measurements"] >= 2
    assert model["best_ms"] == pytest.approx(model["relative"]["best"] * model["best_single_ms"])
    assert (model["break_even_inferences"] is None) == (model["relative"]["best"] >= 1)
    assert {path.name for path in out.iterdir()} == {
        "best.net.affinity.json",
        "best.net.plan.json",
        "card.json",
        "learning_curve.png",
        "measurements.jsonl",
        "net.table.json",
        "policy.safetensors",
        "state.safetensors",
    }
    placed = Placement.load(model["affinity_file"]).to_dict()
    assert set(placed) == {op.get_friendly_name() for op in ov.Core().read_model(small_ir).get_ops()}
    logged = [json.loads(line) for line in (out / "measurements.jsonl").read_text().splitlines()]
    assert sum(line["kind"] == "measured" for line in logged) == model["measurements"]
    assert all(line["ms"] for line in logged if line["kind"] == "measured" and not line["failure"])

    affinity = ("--affinity", model["affinity_file"])
    annotated = cli("annotate", small_ir, *DEVICES, *affinity, "-o", tmp_path, "--json").json()
    assert set(annotated["devices"]) == set(placed.values())


@pytest.mark.torch
def test_the_table_says_what_tuning_was_good_for(
    cli: Command,
    small_ir: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    outcome = cli("finetune", small_ir, *QUICK, "-o", tmp_path / "tuned")
    assert outcome.code == 0, outcome.err
    for row in ("policy before", "policy after", "best found", "X?CPU, the best single device"):
        assert re.search(rf"│ net +│ {row} +│ +\d+\.\d+ │ +\d\.\d{{3}} │", outcome.out)
    assert re.search(
        r"\d measurements?, which (gained nothing|pays off after [\d,]+ inferences?);", outcome.out
    )
    assert "learning_curve.png" in outcome.out


def start(model: Path, out: Path, *options: str) -> subprocess.Popen[str]:
    """A run in another process that only a signal ends soon, once it has measured something."""
    log = out / "measurements.jsonl"
    known = log.read_text().count("\n") if log.exists() else 0
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "ov_autoplace", "finetune", model, *DEVICES),
            *("-o", out, "--budget", "10m", "--patience", "1000000", *options),
        ],
        env={**os.environ, "AUTOPLACE_EXTRA_DEVICES": EXTRA_DEVICES},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    state, saved = out / "state.safetensors", time.time()
    while process.poll() is None:
        begun = log.exists() and log.read_text().count("\n") > known + ("--resume" not in options)
        if (begun or "--resume" in options) and state.exists() and state.stat().st_mtime > saved:
            return process
        time.sleep(0.05)
    raise AssertionError(process.communicate()[1])


@pytest.mark.torch
def test_sigkill_leaves_a_run_that_resume_continues_and_ctrl_c_ends_it_with_the_table(
    small_ir: Path, tmp_path: Path
) -> None:
    out = tmp_path / "tuned"
    process = start(small_ir, out)
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    measured = (out / "measurements.jsonl").read_text().rpartition("\n")[0].splitlines()
    assert set(Placement.load(out / "best.net.affinity.json").devices) <= {"XCPU", "CPU"}

    process = start(small_ir, out, "--resume")
    process.send_signal(signal.SIGINT)
    printed, said = process.communicate()
    assert process.returncode == 0, said
    assert "best single device" in printed
    assert "stopped by Ctrl-C" in said
    assert "--resume" in said
    lines = (out / "measurements.jsonl").read_text().splitlines()
    assert lines[: len(measured)] == measured
    placements = [line["placement"] for line in map(json.loads, lines) if line["kind"] == "measured"]
    assert len(placements) == len(set(placements))
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("as_json", [(), ("--json",)])
def test_ctrl_c_before_anything_was_measured_says_so(
    cli: Command, small_ir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, as_json: tuple[str, ...]
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tuning, "finetune", interrupted)
    outcome = cli("finetune", small_ir, *DEVICES, "-o", tmp_path / "tuned", *as_json)

    assert outcome.code == 130
    assert "before anything was measured; nothing was written" in outcome.err
    assert not (tmp_path / "tuned").exists()


@pytest.mark.torch
def test_a_second_model_that_is_missing_is_refused_at_once(
    cli: Command, small_ir: Path, tmp_path: Path
) -> None:
    outcome = cli("finetune", small_ir, tmp_path / "missing.xml", *DEVICES, "-o", tmp_path / "tuned")

    assert outcome.code == 2
    assert "there is no model file" in outcome.err
    assert not (tmp_path / "tuned").exists()


def test_without_torch_one_sentence_says_what_to_install(small_ir: Path, tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules['torch'] = None; from ov_autoplace.cli import main; "
        f"sys.exit(main(['finetune', {str(small_ir)!r}, '-o', {str(tmp_path / 'tuned')!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "pip install 'ov-autoplace[train]'" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "tuned").exists()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--budget", "soon"), "write a time above 0 like 90, 120s, 5m or 1h"),
        (("--inferences", "2"), "fewer than 6 pairs of runs prove nothing"),
        (("--hopeless", "0.5"), "must be above 1"),
        (("--samples", "1"), "the baseline of a sample"),
        (("--config", '{"AUTOPLACE_MODE": "TUNE"}'), "sets AUTOPLACE_MODE, which tuning has no use for"),
    ],
)
def test_bad_options_are_refused_before_anything_is_loaded(
    cli: Command, small_ir: Path, tmp_path: Path, options: tuple[str, ...], sentence: str
) -> None:
    outcome = cli("finetune", small_ir, "-o", tmp_path / "tuned", *options)
    assert outcome.code == 2
    assert sentence in outcome.err
    assert not (tmp_path / "tuned").exists()


@pytest.mark.torch
def test_bad_requests_are_one_sentence(cli: Command, small_ir: Path, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    for arguments, sentence in (
        ((small_ir, "--checkpoint", tmp_path / "none", *DEVICES), "there is no checkpoint at"),
        ((tmp_path / "missing.xml", *DEVICES), "there is no model file"),
        ((small_ir, "-d", "CPU"), "at least two devices"),
        ((small_ir, "--network", "nonsense", *DEVICES), "there is no network 'nonsense'"),
        ((small_ir, *DEVICES, "-o", file), "it is a file, not a folder"),
    ):
        outcome = cli("finetune", "-o", tmp_path / "tuned", *arguments)
        assert (outcome.code, sentence in outcome.err) == (2, True), outcome.err
        assert outcome.err.count("error:") == 1
        assert not (tmp_path / "tuned").exists()
