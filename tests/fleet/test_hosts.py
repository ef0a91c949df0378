"""A fleet of several hosts with a network between them: Linux namespaces on this computer, with a bridge."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from command_line import EXTRA_DEVICES

pytestmark = pytest.mark.fleet

_SESSIONS = Path("/tmp/ray")  # Ray's own place; each host has another folder there
_UNSHARE = ("unshare", "--net", "--pid", "--uts", "--mount", "--mount-proc", "--fork", "--kill-child")
_NODES = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": "a token of this test and of no other use",
    "RAY_prestart_worker_first_driver": "0",  # processes that nothing here would use
    # A node is taken for dead after some ten seconds of silence, and not after a minute.
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "2000",
    "RAY_health_check_failure_threshold": "4",
    "RAY_CLIENT_SERVER_CHECK_CHANNEL_TIMEOUT_S": "10",  # what a driver waits for a server that is dead
}
# Ray's process for the first driver ends as it begins, as some do (see ov_autoplace/fleet/connection.py).
_FIRST_SERVER_DIES = """
import os, pathlib, sys
died = pathlib.Path({died!r})
if "--mode=specific-server" in pathlib.Path("/proc/self/cmdline").read_text() and not died.exists():
    died.touch()
    os._exit(1)
"""
# Holds the lock of this computer in the network of one host until its input ends.
_MEASURES = """
import sys
from ov_autoplace.fleet.host_lock import boot_id, host_lock
with host_lock(boot_id()) as is_mine:
    print(is_mine, flush=True)
    sys.stdin.read()
"""


class Host:
    """A host with a network, processes, a name and a Ray of its own; all its processes end with it.

    Args:
        name: What it calls itself.
        address: On the bridge.
        environment: Of its processes.
    """

    def __init__(self, name: str, address: str, environment: dict[str, str]) -> None:
        self.name, self.address, self.environment = name, address, environment
        # The first process of its kind ends with the input, that is with this one; it also buries orphans.
        begin = 'mount -t tmpfs ray "$1" && hostname "$0" && echo there && while read -r line; do :; done'
        self._first = subprocess.Popen(
            [*_UNSHARE, "bash", "-c", begin, name, str(_SESSIONS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._first.stdout is not None
        assert self._first.stdout.readline() == "there\n"
        self.ip("link", "set", "lo", "up")

    def ip(self, *words: str) -> None:
        """Change the host's network by ``ip``."""
        subprocess.run(["nsenter", self._space("net"), "ip", *words], check=True)

    def start(self, *command: str, **environment: str) -> subprocess.Popen[str]:
        """Begin a command of this Python."""
        spaces = [self._space(kind) for kind in ("net", "uts", "pid", "mount")]
        return subprocess.Popen(
            ["nsenter", *spaces, sys.executable, *command],
            env={**os.environ, **self.environment, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def fleet(self, *arguments: object) -> subprocess.Popen[str]:
        """Begin ``ov-autoplace fleet``."""
        return self.start("-m", "ov_autoplace", "fleet", *map(str, arguments))

    def link_to(self, bridge: Host) -> None:
        """Get a cable."""
        pair = ("type", "veth", "peer", "name", "eth0", "netns", str(self._first.pid))
        bridge.ip("link", "add", self.name, *pair)
        bridge.ip("link", "set", self.name, "master", "bridge", "up")
        self.ip("address", "add", f"{self.address}/24", "dev", "eth0")
        self.ip("link", "set", "eth0", "up")

    def end(self) -> None:
        assert self._first.stdin is not None
        self._first.stdin.close()
        self._first.wait()

    def _space(self, kind: str) -> str:
        file = {"mount": "mnt", "pid": "pid_for_children"}.get(kind, kind)
        return f"--{kind}=/proc/{self._first.pid}/ns/{file}"


class Network:
    """Hosts on a bridge, which is a host, too."""

    def __init__(self, *names: str, environment: dict[str, str]) -> None:
        _SESSIONS.mkdir(exist_ok=True)
        self.hosts: dict[str, Host] = {}
        self._bridge = Host("bridge", "", {})
        self._bridge.ip("link", "add", "bridge", "type", "bridge")
        self._bridge.ip("link", "set", "bridge", "up")
        for number, name in enumerate(names, 1):
            self.hosts[name] = Host(name, f"10.77.0.{number}", environment)
            self.hosts[name].link_to(self._bridge)

    def cut(self, name: str) -> None:
        """Pull the cable of a host at the bridge, of which the host itself sees nothing."""
        self._bridge.ip("link", "set", name, "nomaster")

    def start_again(self, name: str) -> Host:
        """A host loses its power and gets it back, and its cable."""
        before = self.hosts[name]
        before.end()
        self._bridge.ip("link", "delete", name)
        self.hosts[name] = Host(name, before.address, before.environment)
        self.hosts[name].link_to(self._bridge)
        return self.hosts[name]

    def end(self) -> None:
        for host in (*self.hosts.values(), self._bridge):
            host.end()


def done(process: subprocess.Popen[str], code: int = 0) -> str:
    """What a command printed once it has ended as expected."""
    out, err = process.communicate()
    assert process.returncode == code, out + err
    return out


def no_hosts() -> str:
    """Why there can be no hosts here, if so."""
    for program, package in (("ip", "iproute2"), ("unshare", "util-linux"), ("nsenter", "util-linux")):
        if shutil.which(program) is None:
            return f"needs the program {program}; install {package}"
    tried = subprocess.run(
        [*_UNSHARE, "ip", "link", "add", "type", "veth"], capture_output=True, text=True, check=False
    )
    return f"needs root and network namespaces: {tried.stderr.strip()}" if tried.returncode else ""


@pytest.fixture
def network(tmp_path: Path) -> Iterator[Network]:
    """``head``, ``alpha`` and ``beta``, of which a test makes a cluster, and ``desk``; with a token."""
    reason = no_hosts()
    if reason:
        pytest.skip(reason)
    own = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "AUTOPLACE_EXTRA_DEVICES": EXTRA_DEVICES}
    network = Network("head", "alpha", "beta", "desk", environment={**_NODES, **own})
    try:
        yield network
    finally:
        network.end()


def start_head(head: Host, **environment: str) -> None:
    options = (f"--node-ip-address={head.address}", "--num-cpus=0", "--include-dashboard=false")
    done(head.start("-m", "ray.scripts.scripts", "start", "--head", "--port=6379", *options, **environment))


def test_a_driver_that_is_no_node_measures_until_a_cable_is_pulled_and_goes_on_afterwards(
    network: Network, small_ir: Path, tmp_path: Path
) -> None:
    head, alpha, beta, desk = network.hosts.values()
    died = tmp_path / "died"
    (tmp_path / "sitecustomize.py").write_text(_FIRST_SERVER_DIES.format(died=str(died)))
    start_head(head, PYTHONPATH=str(tmp_path))
    address = f"{head.address}:6379"
    joining = [host.fleet("join", address, "--name", host.name) for host in (alpha, beta)]
    for process in joining:
        done(process)

    out = tmp_path / "out"
    request = ("annotate", small_ir, "-o", out, "--ray", f"ray://{head.address}:10001", "--json")
    with beta.start("-c", _MEASURES) as lock:  # so that beta cannot have begun
        assert lock.stdout is not None
        assert lock.stdout.readline() == "True\n"
        driver = desk.fleet(*request)
        while not list((out / "measurements").glob("count-*.json")):
            assert driver.poll() is None, driver.communicate()
            time.sleep(0.1)
        network.cut("beta")
        report = json.loads(done(driver))

    assert died.exists()
    assert [member["machine"] for member in report["unused"]] == ["head"]
    (kind,) = report["kinds"]
    assert kind["machines"] == ["alpha"]
    assert kind["raced_on"] == "alpha"
    assert Path(kind["annotated_model"]).exists()
    assert any("beta: its node or process ended" in missing for missing in kind["missing"])
    kept = {path: path.stat().st_mtime_ns for path in (out / "measurements").glob("count-*.json")}

    done(network.start_again("beta").fleet("join", address, "--name", "beta"))
    report = json.loads(done(desk.fleet(*request, "--resume")))
    (kind,) = report["kinds"]
    assert kind["machines"] == ["alpha", "beta"]
    assert kind["missing"] == []
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
