"""The network that a configuration describes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from ov_autoplace.policy.config import ComposedConfig, MultilevelConfig, NetworkConfig, config_named
from ov_autoplace.policy.networks.interface import PlacementNetwork
from ov_autoplace.policy.networks.multilevel import MultilevelNetwork
from ov_autoplace.policy.networks.papers.network import ComposedNetwork

__all__ = ["make_network", "superposition_parameters"]

_NETWORKS: dict[type[NetworkConfig], Callable[[Any], PlacementNetwork]] = {
    MultilevelConfig: MultilevelNetwork,
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


def superposition_parameters(network: nn.Module) -> list[nn.Parameter]:
    """The parameters that condition ``network`` on its graph: those of all parts named ``superposition``."""
    return [value for name, value in network.named_parameters() if "superposition" in name.split(".")]
