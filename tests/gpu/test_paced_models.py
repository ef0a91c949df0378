"""A GPU whose kernels take a given time: profiles, overlap with the CPU, and that all of it is marked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import openvino as ov
import paced_models
import pytest
from gpu_models import encoder
from paced_programs import SHIM, in_process

from ov_autoplace.devices.names import is_emulated

pytestmark = SHIM
MARK = "paced, outputs undefined"
NO_LINE = "does not read like a kernel's name or pattern and its microseconds (0 to 1e9)"


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = tmp_path / "kernels.txt"
    path.write_text("softmax* 1500\n* 500\n", encoding="utf-8")
    return f"table:{path}"


def test_only_a_paced_device_is_emulated(core: ov.Core, table: str) -> None:
    assert not any(is_emulated(core, device) for device in core.available_devices)
    found = in_process(paced_models.names, table)
    assert MARK in found["GPU"][0]
    assert found["GPU"][1]
    assert not found["CPU"][1]


def test_another_table_is_another_device_and_so_is_a_factor(table: str, tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text("* 70\n", encoding="utf-8")
    named = [
        in_process(paced_models.names, paced)["GPU"][0]
        for paced in (table, f"table:{other}", "factor:2", "factor:3")
    ]
    assert len(set(named)) == 4
    assert all(MARK in name for name in named)


def test_a_profile_shows_the_tables_times_and_waiting_takes_no_processor(table: str) -> None:
    found = in_process(paced_models.profile, table)
    kernels = [(kind, seconds) for kind, seconds in found["nodes"] if not kind.startswith("wait")]
    assert sum(kind.startswith("softmax") for kind, _ in kernels) == 2
    assert len(kernels) > 10
    for kind, seconds in kernels:
        assert seconds == (1500e-6 if kind.startswith("softmax") else 500e-6)
    assert min(found["walls"]) >= sum(seconds for _, seconds in kernels)
    assert found["processor"] < 0.3 * sum(found["walls"])


def test_kernels_that_no_line_names_take_ten_microseconds(tmp_path: Path) -> None:
    path = tmp_path / "kernels.txt"
    path.write_text("softmax* 1500\n", encoding="utf-8")
    nodes = in_process(paced_models.profile, f"table:{path}")["nodes"]
    times = {s for kind, s in nodes if not kind.startswith(("softmax", "wait"))}
    assert times == {10e-6}


def test_with_a_factor_an_inference_takes_that_many_times_its_kernels(tmp_path: Path) -> None:
    """Latencies of one process: the first run of each kernel is real, and there are many of some."""
    slow = in_process(paced_models.profile, "factor:1000")
    fast = in_process(paced_models.profile, "factor:100")
    assert min(slow["walls"]) > 3 * min(fast["walls"])
    assert slow["processor"] < 0.3 * sum(slow["walls"])


def test_a_paced_inference_beside_one_on_the_cpu_takes_the_longer_of_both_and_not_their_sum(
    table: str,
) -> None:
    tries = in_process(paced_models.overlap, table, tries=8)
    shares = [both / (cpu + gpu) for cpu, gpu, both in tries]
    # Of equal parts half the sum is perfect; on a busy machine one good try is enough to show it.
    assert min(shares) < 0.75, tries
    for _, gpu, both in tries:
        assert both > 0.5 * gpu


@pytest.mark.parametrize(
    ("paced", "content", "sentence"),
    [
        ("factor:0", None, "VIRTUAL_GPU_PACED=factor:0 needs a number above 0 behind the colon"),
        ("factor:nan", None, "VIRTUAL_GPU_PACED=factor:nan needs a number above 0 behind the colon"),
        (
            "slowly",
            None,
            "VIRTUAL_GPU_PACED=slowly is none of factor:NUMBER, table:FILE and record:FILE",
        ),
        (
            "table:{}",
            None,
            "{} holds no kernel's time, or cannot be read; VIRTUAL_GPU_PACED names it as table",
        ),
        (
            "table:{}",
            "a 1\nb -2\n",
            f"{{}}, line 2: 'b -2' {NO_LINE}",
        ),
        (
            "table:{}",
            "a 1 2\n",
            f"{{}}, line 1: 'a 1 2' {NO_LINE}",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_sentence(
    tmp_path: Path, paced: str, content: str | None, sentence: str
) -> None:
    path = tmp_path / "kernels.txt"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", "import openvino; print(openvino.Core().available_devices)"],
        env={**os.environ, "VIRTUAL_GPU_PACED": paced.format(path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert done.stdout.strip() == "['CPU']"
    assert done.stderr.strip() == f"virtual GPU: {sentence.format(path)}"


def test_outputs_of_a_paced_device_are_not_compared(table: str) -> None:
    refused = in_process(paced_models.refused_comparisons, table)
    assert refused["CPU"] == ""
    for way in ("GPU", "HETERO"):
        assert "outputs are undefined" in refused[way]


def test_decisions_and_cost_tables_are_marked(table: str, tmp_path: Path) -> None:
    found = in_process(paced_models.decision, table, folder=str(tmp_path))
    assert found["reason"].endswith("; times of GPU are emulated, its outputs undefined")
    assert found["source"] in ("profiled (emulated: GPU)", "measured (emulated: GPU)")
    assert "emulated" not in found["CPU"]


def test_target_profiles_are_marked_and_what_is_decided_with_them(table: str, tmp_path: Path) -> None:
    found = in_process(paced_models.target, table, path=str(tmp_path / "target.json"))
    assert "measured (emulated: GPU)" in found["sources"]["GPU"]
    assert "measured" not in found["sources"]["GPU"]
    assert not any("emulated" in source for source in found["sources"]["CPU"])
    assert found["transfers"] == found["saved"] == "measured (emulated: GPU)"
    assert "times of GPU are emulated" in found["reason"]


def test_commands_mark_what_is_emulated(table: str, tmp_path: Path) -> None:
    path = tmp_path / "encoder.xml"
    ov.save_model(encoder(), path)

    def json_of(*words: str) -> dict[str, object]:
        command = [sys.executable, "-m", "ov_autoplace", *words, "--json"]
        variables = {**os.environ, "VIRTUAL_GPU_PACED": table}
        done = subprocess.run(
            command, env=variables, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stderr
        answer: dict[str, object] = json.loads(done.stdout)
        return answer

    devices = {row["name"]: row["emulated"] for row in json_of("devices")["devices"]}
    assert devices == {"CPU": False, "GPU": True}

    rows = json_of("bench", str(path), "-d", "GPU,CPU", "--seconds", "1")["rows"]
    marked = {row["name"]: "emulated" in row["note"] for row in rows}
    assert marked["GPU"]
    assert marked["HETERO"]
    assert not marked["CPU"]

    explained = json_of("explain", str(path), "-d", "GPU,CPU")
    assert "emulated: GPU" in explained["cost_source"]
    assert "times of GPU are emulated" in explained["decision"]
