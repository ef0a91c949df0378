"""New weights for an exported network, without exporting it again.

Tracing and converting a network takes seconds; the file that results differs from its predecessor's in the
weights alone, which lie in the ``.bin`` as they are in torch. So they can be exchanged in place, as long as
nothing else was computed from them: every weight is found there exactly once, and every other constant of
more than one number holds integers.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["exchange_weights"]

Weights = Mapping[str, NDArray[Any]]


def exchange_weights(graph: bytes, constants: bytes, old: Weights, new: Weights) -> bytes | None:
    """The ``.bin`` of an exported network with other weights.

    Args:
        graph: Content of the ``.xml``.
        constants: Content of the ``.bin``.
        old: The weights that it was exported with.
        new: The ones to put in their place; same names and shapes.

    Returns:
        The new content; ``None`` when the weights cannot be told from each other or from other constants, as
        in a network that was never trained, where many are all ones. Such a network has to be exported.
    """
    places: dict[bytes, set[int]] = {}
    floats: set[int] = set()
    for layer in ET.fromstring(graph).iter("layer"):
        data = layer.find("data")
        if layer.get("type") != "Const" or data is None:
            continue
        offset, size = int(data.attrib["offset"]), int(data.attrib["size"])
        places.setdefault(constants[offset : offset + size], set()).add(offset)
        if data.attrib["element_type"].startswith("f") and size > np.dtype(np.float32).itemsize:
            floats.add(offset)
    result = bytearray(constants)
    written: set[int] = set()
    for name, value in old.items():
        found = places.get(value.tobytes(), set())
        if len(found) != 1 or found & written or new[name].shape != value.shape:
            return None
        (offset,) = found
        content = new[name].astype(value.dtype, copy=False).tobytes()
        result[offset : offset + len(content)] = content
        written.add(offset)
    return None if floats - written else bytes(result)
