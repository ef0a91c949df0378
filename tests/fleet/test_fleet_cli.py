"""The commands of a fleet on a local cluster, as a user types them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

import openvino as ov
import pytest

from command_line import Command
from ov_autoplace._version import __version__
from ov_autoplace.cost.samples import CostSamples
from ov_autoplace.cost.table_json import load_table
from ov_autoplace.fleet.connection import _join, connected
from ov_autoplace.plan.annotation import annotated_placement

pytestmark = pytest.mark.fleet


@pytest.fixture
def fleet(cli: Command, cluster: Any, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs ``ov-autoplace fleet`` on the cluster; the driver itself has no extra device."""
    monkeypatch.delenv("AUTOPLACE_EXTRA_DEVICES")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    return lambda command, *arguments: cli("fleet", command, *arguments, "--ray", cluster.address)


@pytest.mark.smoke
def test_devices_tells_kinds_and_what_cannot_be_measured_on(fleet: Command, extra_node: Any) -> None:
    extra_node("liar", num_cpus=0, resources={"ov_device:CPU": 1, "ov_device:GPU": 1})
    report = fleet("devices", "--json").json()

    machines = {machine["machine"]: machine for machine in report["machines"]}
    assert machines["alpha"]["kind"] == machines["beta"]["kind"] != machines["gamma"]["kind"]
    assert machines["alpha"]["devices"] == ["CPU", "XCPU"]
    assert machines["gamma"]["devices"] == ["CPU"]
    assert "offers GPU, but OpenVINO finds CPU" in machines["liar"]["problem"]
    heads = [m for name, m in machines.items() if name not in ("alpha", "beta", "gamma", "liar")]
    assert [head["kind"] for head in heads] == [None]
    assert "fleet join" in heads[0]["problem"]
    kinds = {kind["kind"]: kind for kind in report["kinds"]}
    assert kinds[machines["alpha"]["kind"]]["machines"] == ["alpha", "beta"]
    assert any("INFERENCE_NUM_THREADS" in fact for fact in kinds[machines["alpha"]["kind"]]["facts"])


def test_nodes_of_other_releases_are_named_with_them(fleet: Command, extra_node: Any, tmp_path: Path) -> None:
    programs = {
        "elder": "import ov_autoplace._version as version; version.__version__ = '0.0.1'",
        "stranger": "import openvino; openvino.get_version = lambda: '2024.0.0'",
    }
    for name, program in programs.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "sitecustomize.py").write_text(program)
        extra_node(name, environment={"PYTHONPATH": str(tmp_path / name)})
    report = fleet("devices", "--json").json()

    problems = {machine["machine"]: machine["problem"] for machine in report["machines"]}
    assert problems["elder"].startswith(f"has ov-autoplace 0.0.1, here is {__version__}: install the same")
    assert problems["stranger"].startswith("has OpenVINO 2024.0.0, here is")


@pytest.mark.smoke
def test_each_kind_gets_a_placement_of_its_own(fleet: Command, small_ir: Path, tmp_path: Path) -> None:
    report = fleet("annotate", small_ir, "-o", tmp_path / "out", "--json").json()

    kinds = {tuple(kind["machines"]): kind for kind in report["kinds"]}
    assert set(kinds) == {("alpha", "beta"), ("gamma",)}
    core = ov.Core()
    ops = {op.get_friendly_name() for op in core.read_model(small_ir).get_ops()}
    for kind in report["kinds"]:
        placement = annotated_placement(core.read_model(kind["annotated_model"]))
        assert placement is not None
        assert set(placement.devices) <= set(kind["devices"])
        assert set(json.loads(Path(kind["affinity_file"]).read_text())) == ops
        assert len(kind["devices"]) == 1 or load_table(kind["costs"]).devices == tuple(kind["devices"])
        assert kind["raced_on"] in kind["machines"]
        assert kind["missing"] == []
        assert set(kind["spread"]) == set(kind["devices"])
        # The promise: never knowingly slower than the best device alone, or the machine was too busy to tell.
        assert kind["confirmation"]["holds"] in (True, None)
    kept = sorted(path.name for path in (tmp_path / "out" / "measurements").glob("count-*"))
    assert len(kept) == 3


def test_a_driver_that_was_killed_goes_on_with_what_was_measured(
    fleet: Command, cluster: Any, small_ir: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    arguments = ["fleet", "annotate", str(small_ir), "--ray", cluster.address, "-o", str(out)]
    driver = subprocess.Popen(
        [sys.executable, "-m", "ov_autoplace", *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while not list((out / "measurements").glob("count-*.json")):
        assert driver.poll() is None
        time.sleep(0.05)
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    first = {path: path.stat().st_mtime_ns for path in (out / "measurements").glob("count-*.json")}

    assert fleet("annotate", small_ir, "-o", out).code == 2  # what was measured is not thrown away
    report = fleet("annotate", small_ir, "-o", out, "--resume", "--json").json()
    assert {machine for kind in report["kinds"] for machine in kind["machines"]} == {"alpha", "beta", "gamma"}
    assert all(kind["annotated_model"] for kind in report["kinds"])
    assert {path: path.stat().st_mtime_ns for path in first} == first


def test_calibrate_writes_a_target_for_each_kind(
    fleet: Command, cli: Command, small_ir: Path, tmp_path: Path
) -> None:
    report = fleet("calibrate", "-o", tmp_path / "out", "--quick", "--machines", "1", "--json").json()

    for kind in report["kinds"]:
        assert len(kind["machines"]) == 1
        outcome = cli(
            "annotate", small_ir, "--target", kind["target"], "--mode", "zero-shot", "-o", tmp_path, "--json"
        )
        assert outcome.json()["devices"] == kind["devices"]


def test_collect_writes_what_a_machine_of_each_kind_measured(
    fleet: Command, small_ir: Path, tmp_path: Path
) -> None:
    report = fleet("collect", small_ir, "-o", tmp_path / "out", "--json").json()

    assert len(report["kinds"]) == 2
    for kind in report["kinds"]:
        (path,) = kind["costs"].values()
        samples = CostSamples.load(path)
        assert [network.family for network in samples.networks] == [small_ir.stem]
        settings = {samples.settings[m.setting].name for m in samples.measurements}
        assert settings == {setting.name for setting in samples.settings} != set()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("devices", "--ray", "127.0.0.1:1"), "no Ray cluster answers at 127.0.0.1:1"),
        (("devices", "--ray", "ray://127.0.0.1:1"), "'ray[client]' was installed when it was started"),
        (("devices", "--ray", "nonsense"), "is not the address of a cluster"),
        (("join", "127.0.0.1:1"), "no Ray cluster answers"),
        (("join", "127.0.0.1:1", "-d", "GPU"), "no device 'GPU'"),
    ],
)
def test_what_does_not_answer_is_said_in_a_sentence(
    cli: Command, arguments: tuple[str, ...], words: str
) -> None:
    outcome = cli("fleet", *arguments, "--json")

    assert outcome.code == 2
    assert words in json.loads(outcome.out)["error"]


def test_a_kind_that_is_not_there_is_refused_with_those_that_are(
    fleet: Command, small_ir: Path, tmp_path: Path
) -> None:
    outcome = fleet("annotate", small_ir, "-o", tmp_path / "out", "--kind", "cray-1")

    assert outcome.code == 2
    assert "'cray-1'" in outcome.err
    assert "-xcpu-" in outcome.err


def test_join_says_the_plain_command(cli: Command) -> None:
    report = cli("fleet", "join", "10.0.0.1:6379", "-d", "XCPU", "--dry-run", "--json").json()

    assert report["command"] == [
        "ray", "start", "--address", "10.0.0.1:6379", "--resources", '{"ov_device:XCPU": 1}',
    ]  # fmt: skip
    assert not report["joined"]


def test_what_ray_prints_of_nodes_is_no_part_of_an_answer(
    cluster: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    with connected(cluster.address):
        print("(raylet) a node ended")

    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("is_on_here", [True, False])
def test_tls_that_one_side_alone_uses_is_said_in_a_sentence(
    cli: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_on_here: bool
) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("RAY_USE_TLS", str(int(is_on_here)))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        server = Thread(target=_answer_once, args=(listener, None if is_on_here else _certificate(tmp_path)))
        server.start()
        outcome = cli("fleet", "devices", "--ray", address)
        server.join()
    expected = (
        "does not use TLS, and RAY_USE_TLS is set here" if is_on_here else "uses TLS; set RAY_USE_TLS=1"
    )
    assert outcome.code == 2
    assert f"the Ray cluster at {address} {expected}" in outcome.err


def _certificate(folder: Path) -> ssl.SSLContext:
    if shutil.which("openssl") is None:
        pytest.skip("needs the program openssl, which makes a certificate")
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    what = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=test"]
    command = ["openssl", *what, "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


def _answer_once(listener: socket.socket, context: ssl.SSLContext | None) -> None:
    """Shake hands, or hang up as who expected another protocol."""
    connection, _ = listener.accept()
    with connection, suppress(OSError):
        if context is None:
            connection.recv(1)
        else:
            context.wrap_socket(connection, server_side=True).close()


class _Head:
    """Stands for Ray, whose head fails in these words, one after the other, and then lets a driver in."""

    def __init__(self, *words: str) -> None:
        self.words = list(words)

    def init(self, **how: object) -> None:
        if self.words:
            raise ConnectionAbortedError(f"Init Failure From Server:\n{self.words.pop(0)}")


@pytest.mark.parametrize(
    "words",
    [
        "Starting Ray client server failed. See ray_client_server.err",
        "Traceback (most recent call last):\n  ...\npsutil.ZombieProcess: PID still exists but it's a zombie",
        "Proxy failed to Connect to backend! Check `ray_client_server.err`",
    ],
)
def test_a_head_whose_process_for_the_driver_died_is_asked_again(words: str) -> None:
    head = _Head(words, words)
    _join(head, "ray://head:10001")
    assert not head.words


def test_what_another_try_cannot_mend_is_told_at_once() -> None:
    head = _Head("Version mismatch", "Version mismatch")
    with pytest.raises(ConnectionAbortedError):
        _join(head, "ray://head:10001")
    assert len(head.words) == 1
