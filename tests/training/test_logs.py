"""Logs of training runs."""

from __future__ import annotations

import json
import math
import signal
import subprocess
import sys

import numpy as np
import pytest

from ov_autoplace.errors import OutputError, TrainingError
from ov_autoplace.training.logs import JsonLinesLog, read_log


def test_records_are_read_back_in_order(tmp_path):
    with JsonLinesLog(tmp_path / "log.jsonl") as log:
        for step in range(3):
            log.write({"step": step, "loss": 1.5 * step, "name": "é\nü"})
    assert read_log(tmp_path / "log.jsonl") == [
        {"step": s, "loss": 1.5 * s, "name": "é\nü"} for s in range(3)
    ]


def test_numpy_values_become_plain_and_what_is_not_finite_becomes_null(tmp_path):
    with JsonLinesLog(tmp_path / "log.jsonl") as log:
        log.write(
            {
                "loss": np.float32(0.5),
                "steps": np.int64(7),
                "gaps": np.array([1.0, math.inf]),
                "more": {"mean": math.nan, "seeds": (1, 2)},
            }
        )
    text = (tmp_path / "log.jsonl").read_text()
    expected = {"loss": 0.5, "steps": 7, "gaps": [1.0, None], "more": {"mean": None, "seeds": [1, 2]}}
    assert json.loads(text) == expected


def test_a_record_is_on_disk_as_soon_as_it_is_written(tmp_path):
    log = JsonLinesLog(tmp_path / "log.jsonl")
    log.write({"step": 1})
    assert read_log(tmp_path / "log.jsonl") == [{"step": 1}]
    log.close()


def test_a_log_survives_a_kill(tmp_path):
    path = tmp_path / "log.jsonl"
    program = (
        "import os, signal, sys\n"
        "from ov_autoplace.training.logs import JsonLinesLog\n"
        "log = JsonLinesLog(sys.argv[1])\n"
        "for step in range(5):\n"
        "    log.write({'step': step})\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    killed = subprocess.run([sys.executable, "-c", program, str(path)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert [record["step"] for record in read_log(path)] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("torn", [b'{"step": 2, "lo', b'{"step": 2}', b"{", b"\xc3"])
def test_a_torn_last_line_is_cut_off_when_the_log_is_opened_again(tmp_path, torn):
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"step": 0}\n{"step": 1}\n' + torn)
    assert read_log(path) == [{"step": 0}, {"step": 1}]
    with JsonLinesLog(path) as log:
        log.write({"step": 2})
    assert path.read_text() == '{"step": 0}\n{"step": 1}\n{"step": 2}\n'


def test_a_resumed_run_drops_what_it_will_write_again(tmp_path):
    path = tmp_path / "log.jsonl"
    with JsonLinesLog(path) as log:
        for step in range(6):
            log.write({"step": step})
    with path.open("a") as file:
        file.write('{"step": 6')
    with JsonLinesLog(path, keep=lambda record: record["step"] <= 3) as log:
        log.write({"step": 4})
    assert [record["step"] for record in read_log(path)] == [0, 1, 2, 3, 4]


def test_a_file_that_is_no_log_is_refused_and_left_alone(tmp_path):
    path, content = tmp_path / "log.jsonl", b'{"step": 0}\n{"step"}\n{"step": 2}\n'
    path.write_bytes(content)
    with pytest.raises(TrainingError, match="line 2 does not parse as JSON"):
        JsonLinesLog(path, keep=lambda record: True)
    assert path.read_bytes() == content


def test_a_log_that_cannot_be_written_is_one_sentence(tmp_path):
    with pytest.raises(OutputError, match="cannot write the log"):
        JsonLinesLog(tmp_path / "no-such-folder" / "log.jsonl")
