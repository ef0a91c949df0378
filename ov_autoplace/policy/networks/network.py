"""The network that a configuration describes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from ov_autoplace.errors import TrainingError
from ov_autoplace.policy.config import ComposedConfig, NetworkConfig, PairwiseConfig, config_named
from ov_autoplace.policy.networks.interface import PlacementNetwork
from ov_autoplace.policy.networks.pairwise import PairwiseNetwork
from ov_autoplace.policy.networks.papers.network import ComposedNetwork

__all__ = ["inherit", "make_network", "superposition_parameters"]

_NETWORKS: dict[type[NetworkConfig], Callable[[Any], PlacementNetwork]] = {
    PairwiseConfig: PairwiseNetwork,
    ComposedConfig: ComposedNetwork,
}


def make_network(config: str | NetworkConfig, seed: int = 0) -> PlacementNetwork:
    """A network with fresh weights that depend on the seed alone.

    Args:
        config: A configuration, or the name of one in :data:`~ov_autoplace.policy.config.CONFIGS`.
        seed: Of the weights.

    Raises:
        TrainingError: There is no configuration of that name.
    """
    if isinstance(config, str):
        config = config_named(config)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return _NETWORKS[type(config)](config)


def inherit(network: PlacementNetwork, parent: PlacementNetwork) -> None:
    """Give a network the weights of one that has the same parts, or more of them, in place.

    Of more layers the first are taken.

    Raises:
        TrainingError: It has parts that the other one has not, or of another size.
    """
    weights = parent.state_dict()
    for name, value in network.state_dict().items():
        theirs = weights.get(name)
        if theirs is None or theirs.shape != value.shape:
            raise TrainingError(
                f"a network {network.config.name!r} cannot start from the weights of one "
                f"{parent.config.name!r}: {name} differs; start from a checkpoint with the same parts or more"
            )
        value.copy_(theirs)


def superposition_parameters(network: nn.Module) -> list[nn.Parameter]:
    """The parameters that condition ``network`` on its graph: those of all parts named ``superposition``."""
    return [value for name, value in network.named_parameters() if "superposition" in name.split(".")]
