"""The hyper-parameters of a policy's network, and the named configurations. Needs no torch."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from ov_autoplace.errors import OptionError, TrainingError

__all__ = ["CONFIGS", "NetworkConfig", "config_named"]

_TYPES: dict[str, tuple[type, ...]] = {"str": (str,), "bool": (bool,), "int": (int,), "float": (float, int)}


@dataclass(frozen=True)
class NetworkConfig:
    """An encoder, a grouper and a placer.

    Attributes:
        name: Of the configuration.
        superposition: Whether a vector made from the graph's mean features multiplies the units' states.
        hidden: Width of states.
        layers: Message passing layers.
        encoder: ``gcn`` (HSDAG) or ``sage`` (GDP).
        grouper: ``none``, ``colocation`` (only child of an only parent) or ``gpn`` (co-location, then the
            graph parsing network with an unspecified number of groups).
        placer: ``mlp`` or ``attention`` (segment-recurrent over topological order).
        op_types: Whether op types are read.
        heads, segment: Of ``attention``: heads, and units per segment.
        placer_layers: Layers of ``attention``.
        dropout: In the encoder, while training.
        num_devices: Devices that it decides between.
    """

    name: str
    superposition: bool = False
    hidden: int = 48
    layers: int = 2
    encoder: str = "gcn"
    grouper: str = "none"
    placer: str = "mlp"
    op_types: bool = True
    heads: int = 4
    segment: int = 128
    placer_layers: int = 2
    dropout: float = 0.0
    num_devices: int = 2

    def __post_init__(self) -> None:
        self._check_choice("encoder", "gcn", "sage")
        self._check_choice("grouper", "none", "colocation", "gpn")
        self._check_choice("placer", "mlp", "attention")

    def for_devices(self, count: int) -> NetworkConfig:
        """The configuration for a machine with so many devices."""
        return replace(self, num_devices=count)

    def to_dict(self) -> dict[str, Any]:
        """As JSON-able dictionary."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> NetworkConfig:
        """From :meth:`to_dict`'s answer.

        Raises:
            OptionError: An unknown or missing field, or a bad value.
        """
        types = {field.name: str(field.type) for field in fields(cls)}
        for name, value in values.items():
            if name not in types:
                raise OptionError(f"a network has no hyper-parameter {name!r}")
            if type(value) not in _TYPES[types[name]]:
                raise OptionError(f"{name} is {value!r}; it must be of type {types[name]}")
        try:
            return cls(**values)
        except TypeError as cause:
            raise OptionError(f"the network's hyper-parameters are incomplete: {cause}") from cause

    def _check_choice(self, field: str, *choices: str) -> None:
        value = getattr(self, field)
        if value not in choices:
            raise OptionError(f"{field} is {value!r}; it can be {', '.join(choices)}")


CONFIGS = {
    "hsdag": NetworkConfig("hsdag", encoder="gcn", grouper="gpn", placer="mlp", hidden=128, dropout=0.2),
    "gdp": NetworkConfig("gdp", encoder="sage", placer="attention", superposition=True, hidden=64, layers=3),
}
"""The networks of the two papers."""


def config_named(name: str) -> NetworkConfig:
    """One of :data:`CONFIGS`.

    Raises:
        TrainingError: There is none of that name.
    """
    if name not in CONFIGS:
        raise TrainingError(f"there is no network {name!r}; there are {', '.join(CONFIGS)}")
    return CONFIGS[name]
