"""The hyper-parameters of a policy's network, and the named configurations. Needs no torch."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

from ov_autoplace.errors import OptionError

__all__ = ["CONFIGS", "NetworkConfig"]

_CHOICES = {
    "encoder": ("gcn", "sage", "multilevel"),
    "grouper": ("none", "colocation", "gpn"),
    "placer": ("mlp", "attention", "equivariant"),
    "implementation": ("bag", "dgl"),
}

_TYPES: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "bool": (bool,),
    "int": (int,),
    "float": (float, int),
    "int | None": (int, type(None)),
}


@dataclass(frozen=True)
class NetworkConfig:
    """What :class:`~ov_autoplace.policy.networks.network.PlacementNetwork` is made of.

    Attributes:
        name: Of the configuration.
        encoder: ``gcn`` (HSDAG), ``sage`` (GDP), or ``multilevel`` (autoplace-base): states per unit and
            device, message passing on the graph and on its coarser groupings.
        grouper: ``none``, ``colocation`` (only child of an only parent) or ``gpn`` (co-location, then the
            graph parsing network with an unspecified number of groups).
        placer: ``mlp``, ``attention`` (segment-recurrent over topological order), or ``equivariant``: scores
            each pair of unit and device alike, for any number of devices.
        superposition: Whether a vector made from the graph's mean features multiplies the placer's inputs.
        reads_costs: Whether ``gcn`` and ``sage`` see the cost table beside the structure.
        hidden: Width of states.
        layers: Message passing layers; of ``multilevel`` those on the finest level, per round and direction.
        rounds: Of ``multilevel``: how often the network decides, each time knowing its last answer.
        coarse: Of ``multilevel``: whether it uses the coarser groupings.
        feedback: Of ``multilevel``: whether a round sees what its last answer would cost.
        cross_device: Of ``multilevel``: whether states of one unit on several devices see each other.
        op_types: Whether op types are read.
        probes: Of ``multilevel``: whether it is told what simple placements would run into.
        looks: Of ``multilevel``: before how many of its last rounds it is told what its own answer so far
            runs into; below ``rounds``.
        heads, segment: Of ``attention``: heads, and units per segment.
        placer_layers: Layers of ``attention``.
        dropout: In the encoder, while training.
        num_devices: Devices that ``mlp`` and ``attention`` decide between; ``None`` for ``equivariant``.
        implementation: Of message passing: ``bag`` (torch's ``embedding_bag``) or ``dgl``.
    """

    name: str
    encoder: str = "multilevel"
    grouper: str = "none"
    placer: str = "equivariant"
    superposition: bool = False
    reads_costs: bool = True
    hidden: int = 48
    layers: int = 2
    rounds: int = 3
    coarse: bool = True
    feedback: bool = True
    cross_device: bool = True
    op_types: bool = True
    probes: bool = True
    looks: int = 0
    heads: int = 4
    segment: int = 128
    placer_layers: int = 2
    dropout: float = 0.0
    num_devices: int | None = None
    implementation: str = "bag"

    def __post_init__(self) -> None:
        for field, choices in _CHOICES.items():
            if getattr(self, field) not in choices:
                raise OptionError(f"{field} is {getattr(self, field)!r}; it can be {', '.join(choices)}")
        if (self.encoder == "multilevel") != (self.placer == "equivariant"):
            raise OptionError(
                "the multilevel encoder has a state per unit and device, "
                "which only the equivariant placer reads"
            )
        if self.encoder == "multilevel" and self.grouper != "none":
            raise OptionError("the multilevel encoder groups by itself; its grouper is 'none'")
        if not 0 <= self.looks < max(self.rounds, 1):
            raise OptionError(
                f"looks is {self.looks}; it can be from 0 to {self.rounds - 1}, one less than rounds"
            )
        if (self.num_devices is None) != (self.placer == "equivariant"):
            raise OptionError("num_devices is a number for mlp and attention, and None for equivariant")

    def to_dict(self) -> dict[str, Any]:
        """As JSON-able dictionary."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> NetworkConfig:
        """From :meth:`to_dict`'s answer.

        Raises:
            OptionError: An unknown or missing field, or a bad value.
        """
        known = {field.name for field in fields(cls)}
        unknown = sorted(set(values) - known)
        if unknown:
            raise OptionError(f"a network has no hyper-parameter {unknown[0]!r}")
        for field in fields(cls):
            kinds = _TYPES[str(field.type)]
            if field.name in values and type(values[field.name]) not in kinds:
                raise OptionError(f"{field.name} is {values[field.name]!r}; it must be of type {field.type}")
        try:
            return cls(**values)
        except TypeError as cause:
            raise OptionError(f"the network's hyper-parameters are incomplete: {cause}") from cause


CONFIGS: dict[str, NetworkConfig] = {
    "hsdag": NetworkConfig(
        "hsdag",
        encoder="gcn",
        grouper="gpn",
        placer="mlp",
        reads_costs=False,
        hidden=128,
        layers=2,
        dropout=0.2,
        num_devices=2,
    ),
    "gdp": NetworkConfig(
        "gdp",
        encoder="sage",
        grouper="none",
        placer="attention",
        superposition=True,
        reads_costs=False,
        hidden=64,
        layers=3,
        num_devices=2,
    ),
    "autoplace-base": NetworkConfig("autoplace-base", superposition=True, looks=2),
}
"""The named configurations: those of the two papers, and the one whose checkpoint is shipped."""
