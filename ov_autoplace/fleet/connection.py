"""Reaching a Ray cluster, and the nodes that it has at the moment."""

from __future__ import annotations

import io
import logging
import os
import socket
import ssl
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from ov_autoplace._base.extras import extra_needed
from ov_autoplace.errors import FleetError, OptionError

__all__ = ["NAMESPACE", "Node", "alive_nodes", "check_answer", "connected", "require_ray"]

NAMESPACE = "ov-autoplace"
"""Of the names that drivers on one cluster share; see ``fleet/units.py``."""

_log = logging.getLogger("ov_autoplace")
_CLIENT = "ray://"
_ANSWER_SECONDS = 5.0
_ATTEMPTS = 5  # so that one driver in 10,000 is refused where one process in seven dies
# Ray's words for a process that died before it was looked at, meanwhile, and after.
_NOT_STARTED = (
    *("Starting Ray client server failed", "psutil.NoSuchProcess", "psutil.ZombieProcess"),
    "Proxy failed to Connect to backend",
)


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
    """The package, which is imported nowhere but in this package, and not before it is needed.

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
            nodes; ``auto`` for the cluster that was started here; ``ray://HOST:PORT`` of the head's Ray
            Client server from any other.

    Raises:
        OptionError: Ray is not installed.
        FleetError: No cluster answers there, or one that this Python or Ray cannot work with.
    """
    ray = require_ray()
    if address.startswith(_CLIENT):
        with extra_needed("fleet", f"{_CLIENT}HOST:PORT"):
            import_module("grpc")
    check_answer(address)
    for name in ("ray", "ray._private.worker", "ray.util.client"):
        logging.getLogger(name).setLevel(logging.ERROR)  # it tells of each step of connecting
    try:
        _join(ray, address)
    except Exception as cause:  # of many kinds, among them bare RuntimeErrors
        reason = _sentence(cause)
        raise FleetError(
            f"cannot join the Ray cluster at {address}: {reason}; {_remedy(address)}, use the same "
            "releases of Python and Ray as its computers, and their token and certificates if there are any "
            f"({_secrets_here()}; docs/fleet.md)"
        ) from cause
    try:
        # Ray prints what befalls nodes where the answer of a command is to be.
        with redirect_stdout(_Log()):
            yield
    finally:
        ray.shutdown()


def _join(ray: Any, address: str) -> None:
    """Connect, again where the head could not start its process for this driver.

    That process is forked from one that serves gRPC, and dies in one of ten to fifteen cases in between (Ray
    2.60, https://github.com/ray-project/ray/issues/63202); the next one knows nothing of it.
    """
    for attempts_left in reversed(range(_ATTEMPTS)):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the error says it
                ray.init(
                    address=address, namespace=NAMESPACE, log_to_driver=False, logging_level=logging.ERROR
                )
            return
        except ConnectionAbortedError as cause:
            if not attempts_left or not any(words in str(cause) for words in _NOT_STARTED):
                raise
            _log.warning("the head at %s started no process for this driver; asking it again", address)


def _sentence(cause: Exception) -> str:
    """What an error of Ray says, of which a head's server sends its whole traceback."""
    text = str(cause).strip()
    _, is_traceback, trace = text.partition("Traceback (most recent call last):")
    if is_traceback:
        text = trace.strip().splitlines()[-1]
    return (" ".join(text.split()) or type(cause).__name__)[:300]


def _remedy(address: str) -> str:
    """What to do about an address at which somebody listens."""
    if address == "auto":
        return "start one with `ray start --head`"
    if address.startswith(_CLIENT):
        return "give the address of its head with the port of its Ray Client server, 10001 unless it was told"
    host = address.rpartition(":")[0]
    return f"give the address of its head, {_CLIENT}{host}:10001 where this computer is none of its nodes"


def _secrets_here() -> str:
    """Which of Ray's means against strangers are set here: a cluster that has others does not say so."""
    settings = ("RAY_AUTH_MODE", "RAY_USE_TLS")
    return ", ".join(f"{name} is {os.environ.get(name) or 'not set'} here" for name in settings)


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
    """Whether anybody listens, with TLS if it is on here, before Ray tries for minutes.

    Args:
        address: See :func:`connected`.

    Raises:
        FleetError: Nobody does, or only with TLS, or only without.
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
        with socket.create_connection((host.strip("[]"), int(port)), _ANSWER_SECONDS) as connection:
            uses_tls = _answers_tls(connection)
    except OSError as cause:
        reason = (cause.strerror or str(cause) or "no answer").lower()
        remedy = "start one with `ray start --head`, or give the address that it printed"
        if address.startswith(_CLIENT):
            remedy = (
                "its head listens there (port 10001 unless it was told) if 'ov-autoplace[fleet]' or "
                "'ray[client]' was installed when it was started with `ray start --head`"
            )
        raise FleetError(f"no Ray cluster answers at {address} ({reason}); {remedy}") from cause
    is_on_here = os.environ.get("RAY_USE_TLS", "0").lower() in ("1", "true")
    if uses_tls and not is_on_here:
        raise FleetError(
            f"the Ray cluster at {address} uses TLS; set RAY_USE_TLS=1 and the paths of its certificates "
            "here (docs/fleet.md)"
        )
    if is_on_here and not uses_tls:
        raise FleetError(
            f"the Ray cluster at {address} does not use TLS, and RAY_USE_TLS is set here; start it with TLS, "
            "or unset that"
        )


def _answers_tls(connection: socket.socket) -> bool:
    """Whether who listens shakes hands by TLS, whoever that is: Ray itself looks at certificates."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    try:
        with context.wrap_socket(connection):
            return True
    except OSError:  # among them ssl.SSLError, and the time limit where nobody says anything
        return False
