"""The hyper-parameters of a policy's network, and the named configurations. Needs no torch."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from ov_autoplace.errors import OptionError, TrainingError

__all__ = ["CONFIGS", "ComposedConfig", "NetworkConfig", "PairwiseConfig", "config_named"]

_TYPES: dict[str, tuple[type, ...]] = {"str": (str,), "bool": (bool,), "int": (int,), "float": (float, int)}
_PAIRWISE = "pairwise"  # in place of an encoder


@dataclass(frozen=True)
class NetworkConfig:
    """What every network has; a configuration is one of the two kinds below.

    Attributes:
        name: Of the configuration.
        superposition: Whether a vector made from the graph's mean features multiplies the units' states.
        hidden: Width of states.
        layers: Message passing layers.
    """

    name: str
    superposition: bool = False
    hidden: int = 48
    layers: int = 2

    @property
    def num_devices(self) -> int | None:
        """The only number of devices that the network decides between; ``None`` = any."""
        return None

    def for_devices(self, count: int) -> NetworkConfig:
        """The configuration for a machine with so many devices."""
        return self

    def to_dict(self) -> dict[str, Any]:
        """As JSON-able dictionary."""
        return asdict(self)

    @staticmethod
    def from_dict(values: dict[str, Any]) -> NetworkConfig:
        """From :meth:`to_dict`'s answer; ``encoder`` tells the kind.

        Raises:
            OptionError: An unknown or missing field, or a bad value.
        """
        given = dict(values)
        kind: type[NetworkConfig] = ComposedConfig
        if given.get("encoder", _PAIRWISE) == _PAIRWISE:
            kind = PairwiseConfig
            given.pop("encoder", None)
        types = {field.name: str(field.type) for field in fields(kind)}
        for name, value in given.items():
            if name not in types:
                raise OptionError(f"a network of this kind has no hyper-parameter {name!r}")
            if type(value) not in _TYPES[types[name]]:
                raise OptionError(f"{name} is {value!r}; it must be of type {types[name]}")
        try:
            return kind(**given)
        except TypeError as cause:
            raise OptionError(f"the network's hyper-parameters are incomplete: {cause}") from cause

    def _check_choice(self, field: str, *choices: str) -> None:
        value = getattr(self, field)
        if value not in choices:
            raise OptionError(f"{field} is {value!r}; it can be {', '.join(choices)}")


@dataclass(frozen=True)
class PairwiseConfig(NetworkConfig):
    """Of autoplace-base: every pair of unit and device is scored alike, by what its neighbours say.

    So the network serves any number of devices.
    """

    def to_dict(self) -> dict[str, Any]:
        """As JSON-able dictionary."""
        return {**asdict(self), "encoder": _PAIRWISE}


@dataclass(frozen=True)
class ComposedConfig(NetworkConfig):
    """Of the papers: an encoder, a grouper and a placer.

    Attributes:
        encoder: ``gcn`` (HSDAG) or ``sage`` (GDP).
        grouper: ``none``, ``colocation`` (only child of an only parent) or ``gpn`` (co-location, then the
            graph parsing network with an unspecified number of groups).
        placer: ``mlp`` or ``attention`` (segment-recurrent over topological order).
        op_types: Whether op types are read.
        reads_costs: Whether it sees the cost table beside the structure.
        heads, segment: Of ``attention``: heads, and units per segment.
        placer_layers: Layers of ``attention``.
        dropout: In the encoder, while training.
        num_devices: Devices that it decides between.
    """

    encoder: str = "gcn"
    grouper: str = "none"
    placer: str = "mlp"
    op_types: bool = True
    reads_costs: bool = False
    heads: int = 4
    segment: int = 128
    placer_layers: int = 2
    dropout: float = 0.0
    num_devices: int = 2

    def __post_init__(self) -> None:
        self._check_choice("encoder", "gcn", "sage")
        self._check_choice("grouper", "none", "colocation", "gpn")
        self._check_choice("placer", "mlp", "attention")

    def for_devices(self, count: int) -> ComposedConfig:
        """The configuration for a machine with so many devices."""
        return replace(self, num_devices=count)


CONFIGS: dict[str, NetworkConfig] = {
    "hsdag": ComposedConfig("hsdag", encoder="gcn", grouper="gpn", placer="mlp", hidden=128, dropout=0.2),
    "gdp": ComposedConfig("gdp", encoder="sage", placer="attention", superposition=True, hidden=64, layers=3),
    "autoplace-base": PairwiseConfig("autoplace-base", superposition=True, hidden=32, layers=3),
}
"""The named configurations: those of the two papers, and the one whose checkpoint is shipped."""


def config_named(name: str) -> NetworkConfig:
    """One of :data:`CONFIGS`.

    Raises:
        TrainingError: There is none of that name.
    """
    if name not in CONFIGS:
        raise TrainingError(f"there is no configuration {name!r}; there are {', '.join(CONFIGS)}")
    return CONFIGS[name]
