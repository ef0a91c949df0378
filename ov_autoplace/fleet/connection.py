"""Reaching a Ray cluster, and the nodes that it has at the moment."""

from __future__ import annotations

import io
import logging
import os
import socket
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from typing import Any

from ov_autoplace._base.extras import extra_needed
from ov_autoplace.errors import FleetError, OptionError

__all__ = ["NAMESPACE", "Node", "alive_nodes", "check_answer", "connected", "require_ray"]

NAMESPACE = "ov-autoplace"
"""Of the names that drivers on one cluster share; see ``fleet/units.py``."""

_log = logging.getLogger("ov_autoplace")
_CLIENT = "ray://"
_ANSWER_SECONDS = 5.0


@dataclass(frozen=True)
class Node:
    """A node of the cluster, alive when it was looked up.

    Attributes:
        id: Ray's, another one each time the node is started.
        address: Where it is on the network.
        host: What its computer calls itself, or what it was called with ``ray start --node-name``.
        resources: What it offers, by name, like ``ov_device:GPU``.
    """

    id: str
    address: str
    host: str
    resources: Mapping[str, float]


def require_ray() -> Any:
    """The package, which is imported nowhere but in this room, and not before it is needed.

    Raises:
        OptionError: It is not installed.
    """
    # Ray sets what tells programs of GPUs that it did not give out; OpenVINO's are none of its business.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    with extra_needed("fleet", "a fleet"):
        import ray
    return ray


@contextmanager
def connected(address: str) -> Iterator[None]:
    """Be a driver of the cluster at an address; what is printed to standard output meanwhile is logged.

    Args:
        address: ``HOST:PORT`` of its head, as ``ray start`` prints it, from a computer that is one of its
            nodes; ``auto`` for the cluster that was started here; ``ray://HOST:PORT`` from any other.

    Raises:
        OptionError: Ray is not installed.
        FleetError: No cluster answers there, or one that this Python or Ray cannot work with.
    """
    ray = require_ray()
    check_answer(address)
    for name in ("ray", "ray._private.worker", "ray.util.client"):
        logging.getLogger(name).setLevel(logging.ERROR)  # it tells of each step of connecting
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the error says it
            ray.init(address=address, namespace=NAMESPACE, log_to_driver=False, logging_level=logging.ERROR)
    except Exception as cause:  # of many kinds, among them bare RuntimeErrors
        reason = " ".join(str(cause).split()) or type(cause).__name__
        address_of = (
            "start one with `ray start --head`" if address == "auto" else "give the address of its head"
        )
        raise FleetError(
            f"cannot join the Ray cluster at {address}: {reason[:300]}; {address_of}, use the same releases "
            "of Python and Ray as its computers, and their token or TLS where they have one (docs/fleet.md)"
        ) from cause
    try:
        # Ray prints what befalls nodes where the answer of a command is to be.
        with redirect_stdout(_Log()):
            yield
    finally:
        ray.shutdown()


class _Log(io.TextIOBase):
    """Takes what is printed as messages for who debugs."""

    def write(self, text: str) -> int:
        if text.strip():
            _log.debug("%s", text.strip())
        return len(text)


def alive_nodes() -> list[Node]:
    """The nodes that the cluster takes to be alive, in a fixed order."""
    nodes = [
        Node(
            found["NodeID"],
            found["NodeManagerAddress"],
            found["NodeManagerHostname"]
            if found["NodeName"] in ("", found["NodeManagerAddress"])
            else found["NodeName"],
            dict(found["Resources"]),
        )
        for found in require_ray().nodes()
        if found["Alive"]
    ]
    return sorted(nodes, key=lambda node: (node.host, node.address, node.id))


def check_answer(address: str) -> None:
    """Whether anybody listens, before Ray tries for a minute.

    Args:
        address: See :func:`connected`.

    Raises:
        FleetError: Nobody does.
        OptionError: The address does not read like one.
    """
    if address == "auto":
        return  # Ray looks it up in its own files
    host, _, port = address.removeprefix(_CLIENT).rpartition(":")
    if not host or not port.isdigit() or int(port) > 0xFFFF:
        raise OptionError(
            f"{address!r} is not the address of a cluster; give HOST:PORT as `ray start --head` prints it, "
            "ray://HOST:PORT, or auto"
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), _ANSWER_SECONDS).close()
    except OSError as cause:
        reason = (cause.strerror or str(cause) or "no answer").lower()
        raise FleetError(
            f"no Ray cluster answers at {address} ({reason}); start one with `ray start --head`, or give the "
            "address that it printed"
        ) from cause
