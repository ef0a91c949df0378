"""The hyper-parameters of a policy's network, and the named configurations. Needs no torch."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from ov_autoplace.errors import OptionError, TrainingError

__all__ = ["CONFIGS", "ComposedConfig", "MultilevelConfig", "NetworkConfig", "config_named"]

_TYPES: dict[str, tuple[type, ...]] = {"str": (str,), "bool": (bool,), "int": (int,), "float": (float, int)}

_FORMER = {"implementation"}
"""What earlier checkpoints say and no network has any more: who passes messages is up to its environment."""

_ALWAYS_MULTILEVEL = {"grouper": "none", "placer": "equivariant", "num_devices": None}
"""What earlier checkpoints say of every multilevel network."""


@dataclass(frozen=True)
class NetworkConfig:
    """What every network has; a configuration is one of the two kinds below.

    Attributes:
        name: Of the configuration.
        superposition: Whether a vector made from the graph's mean features multiplies the units' states.
        hidden: Width of states.
        layers: Message passing layers.
        op_types: Whether op types are read.
    """

    name: str
    superposition: bool = False
    hidden: int = 48
    layers: int = 2
    op_types: bool = True

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

        Earlier checkpoints name the fields of both kinds; those of the other kind are passed over.

        Raises:
            OptionError: An unknown or missing field, or a bad value.
        """
        is_multilevel = values.get("encoder", "multilevel") == "multilevel"
        kind = MultilevelConfig if is_multilevel else ComposedConfig
        types = {field.name: str(field.type) for field in fields(kind)}
        known = {field.name for other in (MultilevelConfig, ComposedConfig) for field in fields(other)}
        known |= _FORMER
        for name, value in values.items():
            if name not in known:
                raise OptionError(f"a network has no hyper-parameter {name!r}")
            if name in types and type(value) not in _TYPES[types[name]]:
                raise OptionError(f"{name} is {value!r}; it must be of type {types[name]}")
            if is_multilevel and value != _ALWAYS_MULTILEVEL.get(name, value):
                raise OptionError(
                    f"{name} is {value!r}; of a multilevel network it is {_ALWAYS_MULTILEVEL[name]!r}"
                )
        try:
            return kind(**{name: value for name, value in values.items() if name in types})
        except TypeError as cause:
            raise OptionError(f"the network's hyper-parameters are incomplete: {cause}") from cause

    def _check_choice(self, field: str, *choices: str) -> None:
        value = getattr(self, field)
        if value not in choices:
            raise OptionError(f"{field} is {value!r}; it can be {', '.join(choices)}")


@dataclass(frozen=True)
class MultilevelConfig(NetworkConfig):
    """Of autoplace-base: states per unit and device, messages on the graph and on its coarser groupings.

    Every pair of unit and device is scored alike, so the network serves any number of devices.

    Attributes:
        layers: Message passing layers, per round.
        rounds: How often the network decides, each time knowing its last answer.
        coarse: Whether units hear the groups that they are in.
        feedback: Whether a round sees what its last answer would cost.
        loads: Whether it sees how much work and memory its last answer gives each device, in each window of
            time.
        cross_device: Whether states of one unit on several devices see each other.
        probes: Whether it is told what simple placements would run into.
        looks: Before how many of its last rounds it is told what its own answer so far runs into; below
            ``rounds``.
    """

    rounds: int = 2
    coarse: bool = True
    feedback: bool = True
    loads: bool = True
    cross_device: bool = True
    probes: bool = True
    looks: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.looks < max(self.rounds, 1):
            raise OptionError(
                f"looks is {self.looks}; it can be from 0 to {self.rounds - 1}, one less than rounds"
            )

    def to_dict(self) -> dict[str, Any]:
        """As JSON-able dictionary."""
        return {**asdict(self), "encoder": "multilevel"}


@dataclass(frozen=True)
class ComposedConfig(NetworkConfig):
    """Of the papers: an encoder, a grouper and a placer.

    Attributes:
        encoder: ``gcn`` (HSDAG) or ``sage`` (GDP).
        grouper: ``none``, ``colocation`` (only child of an only parent) or ``gpn`` (co-location, then the
            graph parsing network with an unspecified number of groups).
        placer: ``mlp`` or ``attention`` (segment-recurrent over topological order).
        reads_costs: Whether it sees the cost table beside the structure.
        heads, segment: Of ``attention``: heads, and units per segment.
        placer_layers: Layers of ``attention``.
        dropout: In the encoder, while training.
        num_devices: Devices that it decides between.
    """

    encoder: str = "gcn"
    grouper: str = "none"
    placer: str = "mlp"
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
    "autoplace-base": MultilevelConfig("autoplace-base", superposition=True, hidden=32, layers=3, looks=1),
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
