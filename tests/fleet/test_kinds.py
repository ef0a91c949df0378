"""Names of kinds of machines, and the folder of a run; no cluster is needed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ov_autoplace.errors import FleetError
from ov_autoplace.fleet.host_lock import host_lock
from ov_autoplace.fleet.kept import KeptAnswers
from ov_autoplace.fleet.kinds import describe_machine, kind_of


@pytest.mark.parametrize(
    ("processor", "begins"),
    [
        ("12th Gen Intel(R) Core(TM) i9-12900K", "12th-gen-core-i9-12900k-8c-gpu-"),
        ("Intel(R) Xeon(R) Platinum 8480C CPU @ 2.00GHz", "xeon-platinum-8480c-8c-gpu-"),
        ("AMD Ryzen 7 7840U with Radeon 780M Graphics", "ryzen-7-7840u-8c-gpu-"),
        ("", "cpu-8c-gpu-"),
    ],
)
def test_the_name_of_a_kind_says_processor_cores_and_devices(processor: str, begins: str) -> None:
    kind = kind_of(processor, 8, ("GPU", "CPU"), ["a driver"])

    assert kind.name.startswith(begins)
    assert kind.name.replace("-", "").replace(".", "").isalnum()


def test_a_kind_has_one_name_and_another_driver_makes_another_kind() -> None:
    facts = ["OpenVINO 1", "GPU=Arc|1.2|driver 7"]

    assert kind_of("x", 2, ("CPU",), facts) == kind_of("x", 2, ("CPU",), list(facts))
    assert kind_of("x", 2, ("CPU",), facts).name != kind_of("x", 2, ("CPU",), [facts[0], "driver 8"]).name


def test_devices_that_are_not_offered_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUTOPLACE_EXTRA_DEVICES", "XCPU=CPU,INFERENCE_NUM_THREADS=1")

    both, one = describe_machine(["CPU", "XCPU"]), describe_machine(["CPU"])
    assert (both["devices"], one["devices"]) == (["CPU", "XCPU"], ["CPU"])
    assert any("INFERENCE_NUM_THREADS" in fact for fact in both["facts"])
    assert both["facts"] != one["facts"]
    assert one["found"] == ["CPU", "XCPU"]


def test_the_lock_of_a_computer_is_free_when_its_process_was_killed() -> None:
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "from ov_autoplace.fleet.host_lock import host_lock\n"
            "import time\n"
            "with host_lock('a test') as held:\n"
            "    print(held, flush=True)\n"
            "    time.sleep(600)\n",
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "True\n"
    with host_lock("a test") as held:
        assert not held
    with host_lock("another computer") as held:
        assert held
    holder.kill()
    holder.wait()
    with host_lock("a test") as held:
        assert held


def test_a_run_is_resumed_only_with_the_same_request(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    KeptAnswers(folder, {"model": "a", "seed": 1}, resume=False).put("count k 1", {"answer": [1.5]})

    assert KeptAnswers(folder, {"model": "a", "seed": 1}, resume=True).get("count k 1")["answer"] == [1.5]  # type: ignore[index]
    with pytest.raises(FleetError, match="add --resume"):
        KeptAnswers(folder, {"model": "a", "seed": 1}, resume=False)
    with pytest.raises(FleetError, match="another seed"):
        KeptAnswers(folder, {"model": "a", "seed": 2}, resume=True)


def test_an_answer_that_was_damaged_is_asked_for_again(tmp_path: Path) -> None:
    kept = KeptAnswers(tmp_path / "out", {}, resume=False)
    kept.put("count k 1", {"answer": 1})
    (path,) = (tmp_path / "out").glob("count*")
    path.write_text(path.read_text()[:10])

    assert kept.get("count k 1") is None
    assert kept.get("count k 2") is None
