"""What many requests in flight run on: one compiled model, or several whose requests take turns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ov_autoplace.errors import PlacementError

__all__ = ["HINT", "RateMember", "RatePlan"]

HINT = "PERFORMANCE_HINT"
"""The property of OpenVINO that asks for a rate."""


@dataclass(frozen=True)
class RateMember:
    """One compiled model.

    Attributes:
        device: Like ``CPU``, ``AUTO:GPU,CPU``, or ``HETERO:GPU,CPU``.
        properties: What it is compiled with beside what the caller gives.
        device_of: The device of every op, for HETERO; empty for other devices.
    """

    device: str
    properties: Mapping[str, str] = field(default_factory=dict)
    device_of: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class RatePlan:
    """How a model is compiled for a rate of requests.

    Attributes:
        name: For tables and sentences.
        base: The compiled model that the answer is: what ``AsyncInferQueue`` and OpenVINO's own code see.
        dealt: Where not empty: compiled models beside it, from which the answer's own
            ``create_infer_request`` deals out requests in turns. A model runs one synchronous inference per
            stream, and only a model of its own runs it in the thread that calls.
        requests: How many requests should be in flight, ``OPTIMAL_NUMBER_OF_INFER_REQUESTS``.
        turns: Whose turn it is, as indices into ``dealt``, over and over; empty = each of them once.
    """

    name: str
    base: RateMember
    dealt: tuple[RateMember, ...] = ()
    requests: int = 1
    turns: tuple[int, ...] = ()

    @property
    def order(self) -> tuple[int, ...]:
        """Indices into ``dealt`` of the first requests, after which they are repeated."""
        return self.turns or tuple(range(len(self.dealt)))

    def to_json(self) -> dict[str, Any]:
        """For files."""
        return {
            "name": self.name,
            "requests": self.requests,
            "base": _member_to_json(self.base),
            "dealt": [_member_to_json(member) for member in self.dealt],
            "turns": list(self.turns),
        }

    @classmethod
    def from_json(cls, data: Any) -> RatePlan:
        """Read what :meth:`to_json` made.

        Raises:
            PlacementError: It is nothing of the kind.
        """
        if not isinstance(data, dict) or set(data) != {"name", "requests", "base", "dealt", "turns"}:
            raise PlacementError("a plan for a rate has a name, requests, a base, what is dealt and turns")
        name, requests, dealt, turns = data["name"], data["requests"], data["dealt"], data["turns"]
        if not isinstance(name, str) or type(requests) is not int or not 1 <= requests <= 1_000_000:
            raise PlacementError(
                f"a plan for a rate has a name and 1 request or more, not {name!r}, {requests!r}"
            )
        if not isinstance(dealt, list):
            raise PlacementError(f"a plan for a rate deals from a list of models, not {dealt!r}")
        if not isinstance(turns, list) or not all(type(t) is int and 0 <= t < len(dealt) for t in turns):
            raise PlacementError(f"the turns of a plan are numbers below {len(dealt)}, not {turns!r}")
        members = tuple(_member_of(member) for member in dealt)
        return cls(name, _member_of(data["base"]), members, requests, tuple(turns))


def _member_to_json(member: RateMember) -> dict[str, Any]:
    return {
        "device": member.device,
        "properties": dict(member.properties),
        "device_of": dict(member.device_of),
    }


def _member_of(data: Any) -> RateMember:
    if not isinstance(data, dict) or set(data) != {"device", "properties", "device_of"}:
        raise PlacementError("a compiled model of a plan has a device, properties and the devices of its ops")
    if not isinstance(data["device"], str) or not data["device"]:
        raise PlacementError(f"a compiled model of a plan has a device, not {data['device']!r}")
    for key in ("properties", "device_of"):
        texts = data[key]
        if not isinstance(texts, dict) or not all(isinstance(v, str) for pair in texts.items() for v in pair):
            raise PlacementError(f"{key} of a plan's compiled model map texts to texts, not {texts!r}")
    return RateMember(data["device"], data["properties"], data["device_of"])
