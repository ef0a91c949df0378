"""Subgraphs that HETERO makes of placements over the GPU and the CPU."""

from __future__ import annotations

import numpy as np
import pytest
from gpu_models import compiled_with

from ov_autoplace.plan.fitting import count_subgraphs
from random_models import random_model


@pytest.mark.smoke
@pytest.mark.seeds(4)
@pytest.mark.parametrize("change", [0.5, 0.15], ids=["scattered", "runs"])
def test_their_number_is_the_counted_one(core, seed: int, change: float) -> None:
    random = np.random.default_rng(100 + seed)
    model = random_model(seed, size=int(random.integers(4, 10)), shared_constants=seed)
    for _ in range(2):
        device, device_of = 0, {}
        for op in model.get_ordered_ops():
            device ^= int(random.random() < change)
            device_of[op.get_friendly_name()] = ("GPU", "CPU")[device]
        compiled = compiled_with(core, model, device_of)
        assert compiled.get_property("HETERO_NUMBER_OF_SUBMODELS") == count_subgraphs(model, device_of)
