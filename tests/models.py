"""Inputs for models under test."""

from __future__ import annotations

import numpy as np
import openvino as ov
from numpy.typing import NDArray

__all__ = ["random_inputs"]


def random_inputs(model: ov.Model, seed: int, default_size: int = 1) -> dict[str | int, NDArray]:
    """Random data for each input: normal, or 0 and 1 for integers, which every index input takes.

    Args:
        model: Whose inputs.
        seed: Of the data.
        default_size: Stands for each dynamic dimension.

    Returns:
        By tensor name, or by position for an input without one.
    """
    random = np.random.default_rng(seed)
    inputs: dict[str | int, NDArray] = {}
    for i, port in enumerate(model.inputs):
        shape = [d.get_length() if d.is_static else default_size for d in port.partial_shape]
        dtype = port.element_type.to_dtype()
        if np.issubdtype(dtype, np.floating):
            data = random.standard_normal(shape, dtype=np.float32).astype(dtype)
        else:
            data = random.integers(0, 2, shape).astype(dtype)
        inputs[port.any_name if port.names else i] = data
    return inputs
