"""The machines of a cluster: which of its nodes can be measured on, of which kind, and why others cannot."""

from __future__ import annotations

import time
from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Any

import openvino as ov

from ov_autoplace._version import __version__
from ov_autoplace.errors import FleetError
from ov_autoplace.fleet.connection import Node, alive_nodes, require_ray
from ov_autoplace.fleet.kinds import Kind, kind_of
from ov_autoplace.fleet.slots import reason_of
from ov_autoplace.fleet.units import Place

__all__ = ["DEVICE_RESOURCE", "Fleet", "Member", "usable"]

DEVICE_RESOURCE = "ov_device:"
"""Begins the name of the Ray resource of an OpenVINO device."""

_ANSWER_SECONDS = 120.0  # for a node to say what it is; on a busy one, starting a process takes most of them
_JOIN = "`ov-autoplace fleet join ADDRESS`"


@dataclass(frozen=True)
class Member:
    """A node of the cluster.

    Attributes:
        node: Ray's view of it.
        machine: Name for people, different from all others'.
        boot_id: Of its computer; empty where it did not say.
        kind: ``None`` where it cannot be measured on.
        full_names: Of the devices.
        problem: Why it cannot take part in measuring, and the remedy; empty where it can.
    """

    node: Node
    machine: str
    boot_id: str
    kind: Kind | None
    full_names: dict[str, str]
    problem: str


class Fleet:
    """The cluster's machines, each asked once what it is."""

    def __init__(self) -> None:
        self._asked: dict[str, tuple[Any, float]] = {}  # by node: reference of the answer, since when
        self._members: dict[str, Member] = {}
        self._is_first = True

    def members(self) -> list[Member]:
        """Nodes that are alive and have said, or failed to say, what they are.

        The first call waits for them all.
        """
        ray = require_ray()
        nodes = {node.id: node for node in alive_nodes()}
        for node in nodes.values():
            if node.id not in self._members and node.id not in self._asked:
                self._asked[node.id] = (_ask(node), time.monotonic())
        waiting = [ref for node_id, (ref, _) in self._asked.items() if node_id in nodes]
        if waiting:
            seconds = _ANSWER_SECONDS if self._is_first else 0.0
            ray.wait(waiting, num_returns=len(waiting), timeout=seconds)
        self._is_first = False
        for node_id, (ref, since) in list(self._asked.items()):
            if node_id not in nodes:
                del self._asked[node_id]
                continue
            ready, _ = ray.wait([ref], timeout=0)
            if ready or time.monotonic() > since + _ANSWER_SECONDS:
                del self._asked[node_id]
                said = _answer(ref) if ready else None
                self._members[node_id] = self._member(nodes[node_id], said, nodes)
        return [self._members[node_id] for node_id in nodes if node_id in self._members]

    def places(self, kinds: Sequence[str] | None = None) -> list[Place]:
        """Where measurements run: one at a time on a computer.

        Args:
            kinds: Names of the kinds that are wanted; ``None`` = all.
        """
        return [
            Place(
                key=member.node.id,
                machine=member.machine,
                node_id=member.node.id,
                resources={f"{DEVICE_RESOURCE}{device}": 1.0 for device in member.kind.devices},
                kind=member.kind.name,
                host=member.boot_id,
            )
            for member in self.members()
            if member.kind is not None and (kinds is None or member.kind.name in kinds)
        ]

    def _member(self, node: Node, said: dict[str, Any] | None, alive: Container[str]) -> Member:
        taken = {member.machine for member in self._members.values() if member.node.id in alive}
        machine, number = node.host, 1
        while machine in taken:
            number += 1
            machine = f"{node.host}#{number}"
        problem = _problem(node, said)
        description = (said or {}).get("machine")
        kind = None
        if not problem and description:
            kind = kind_of(
                description["processor"], description["cores"], description["devices"], description["facts"]
            )
        return Member(
            node,
            machine,
            (said or {}).get("boot_id", ""),
            kind,
            description["full_names"] if description else {},
            problem,
        )


def _offered(node: Node) -> list[str]:
    return sorted(
        name.removeprefix(DEVICE_RESOURCE) for name in node.resources if name.startswith(DEVICE_RESOURCE)
    )


def _problem(node: Node, said: dict[str, Any] | None) -> str:
    """Why a node cannot be measured on, and the remedy; empty where it can."""
    if said is None:
        return f"does not answer within {_ANSWER_SECONDS:g} s; see `ray status`, and start it again"
    if "failure" in said:
        return f"cannot start a process: {said['failure']}"
    here = {"ov-autoplace": __version__, "OpenVINO": ov.get_version()}
    for program, release in here.items():
        there = said["releases"].get(program)
        if there != release:
            has = f"has {program} {there}" if there else f"has no {program}"
            return f"{has}, here is {release}: install the same there, and {_JOIN} again"
    if "trouble" in said:
        return f"cannot use OpenVINO: {said['trouble']}"
    offered, found = _offered(node), said["machine"]["found"]
    if not offered:
        return (
            "offers no OpenVINO devices to the cluster; stop Ray there and join with "
            f"{_JOIN} (it has {', '.join(found) or 'none'})"
        )
    absent = [device for device in offered if device not in found]
    if absent:
        return (
            f"offers {absent[0]}, but OpenVINO finds {', '.join(found) or 'no device'} there; install the "
            f"driver, or stop Ray there and join again with {_JOIN}"
        )
    return ""


def _ask(node: Node) -> Any:
    """Begin to ask a node what it is."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    offered = _offered(node)

    # Nested, so that it travels with its code: a node need not have this package to say so.
    def what_it_is() -> dict[str, Any]:
        from pathlib import Path

        found: dict[str, Any] = {"releases": {}}
        try:
            found["boot_id"] = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        except OSError:
            found["boot_id"] = node_address
        try:
            import openvino

            found["releases"]["OpenVINO"] = openvino.get_version()
            from ov_autoplace._version import __version__ as release

            found["releases"]["ov-autoplace"] = release
            from ov_autoplace.fleet.kinds import describe_machine

            found["machine"] = describe_machine(offered)
        except Exception as cause:
            found["trouble"] = f"{type(cause).__name__}: {str(cause)[:300]}"
        return found

    node_address = node.address
    ray = require_ray()
    strategy = NodeAffinitySchedulingStrategy(node.id, soft=False)
    task = ray.remote(num_cpus=0, max_retries=0, scheduling_strategy=strategy)(what_it_is)
    return task.remote()


def _answer(ref: Any) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = require_ray().get(ref)
    except Exception as cause:  # of Ray's many kinds
        return {"failure": reason_of(cause)}
    return answer


def usable(members: Sequence[Member], address: str) -> list[Member]:
    """Those that can be measured on.

    Raises:
        FleetError: There is none.
    """
    found = [member for member in members if member.kind is not None]
    if not found:
        reasons = "; ".join(f"{member.machine} {member.problem}" for member in members[:3])
        raise FleetError(
            f"no machine of the cluster at {address} can be measured on: {reasons or 'it has none'}"
        )
    return found
