"""Changed inputs: JSON is changed as JSON, so that it gets past the parser, and everything else as bytes."""

from __future__ import annotations

import copy
import json
import math
import random
from typing import Any

_STRANGE_TEXTS = (
    "",
    " ",
    "\0",
    "\x1b[2J",
    "\ud800",
    "e\u0301",
    "CPU",
    "GPU.0",
    "*",
    "[",
    "[!",
    "a" * 300,
    "nan",
    "1e999",
    "-1",
    "\uff10",
    "2GiB",
    "subgraph99999999999999999999: a",
    "../x",
)
_STRANGE_VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    2,
    3,
    255,
    2**31 - 2,
    2**31,
    2**53 + 1,
    2**63 - 1,
    2**63,
    2**64,
    10**400,
    -(2**63),
    0.0,
    -0.0,
    0.5,
    1e-320,
    1e-9,
    1e300,
    -1e300,
    math.nan,
    math.inf,
    -math.inf,
    [],
    {},
    [[]],
    [None],
    [0, 0],
    {"": None},
    *_STRANGE_TEXTS,
)
_JSON_SHARE = 0.75
_DEPTH = 3000


def mutate(data: bytes, limit: int, seed: int, others: tuple[bytes, ...] = ()) -> bytes:
    """One changed copy of an input.

    Args:
        data: The input.
        limit: Most bytes of the result.
        seed: Decides the changes.
        others: Further inputs, parts of which may be taken.
    """
    rng = random.Random(seed)
    if rng.random() < _JSON_SHARE:
        try:
            document = json.loads(data)
        except (ValueError, RecursionError):
            pass
        else:
            return _changed_json(document, rng, others)[:limit]
    return _changed_bytes(bytearray(data), rng, others)[:limit]


def _changed_json(document: Any, rng: random.Random, others: tuple[bytes, ...]) -> bytes:
    document = [document]  # so that the top itself can be replaced
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        places = list(_places(document))
        if not places:
            break
        holder, key = rng.choice(places)
        _change(holder, key, rng, places, others)
    if document and rng.random() < 0.002:
        document[0] = "@"
        return json.dumps(document[0]).replace('"@"', "[" * _DEPTH + "]" * _DEPTH).encode()
    return json.dumps(document[0]).encode() if document else b""


def _places(value: Any) -> Any:
    """Every (container, key) of a document, outer ones first."""
    queue = [value]
    while queue:
        holder = queue.pop()
        items = holder.items() if isinstance(holder, dict) else enumerate(holder)
        for key, item in list(items):
            yield holder, key
            if isinstance(item, (dict, list)):
                queue.append(item)


def _change(holder: Any, key: Any, rng: random.Random, places: list[Any], others: tuple[bytes, ...]) -> None:
    if key not in holder if isinstance(holder, dict) else key >= len(holder):
        return  # an earlier change took it away
    kind = rng.random()
    value = holder[key]
    if kind < 0.35:
        # A copy: later changes to the document must not reach the list of values, nor close a cycle.
        holder[key] = copy.deepcopy(rng.choice(_STRANGE_VALUES))
    elif kind < 0.5 and isinstance(value, (int, float)) and not isinstance(value, bool):
        holder[key] = rng.choice(
            (value + 1, value - 1, -value, value * 2, value * 1e-3 if abs(value) < 2**63 else 0.5, str(value))
        )
    elif kind < 0.5 and isinstance(value, str):
        cut = rng.randrange(len(value) + 1)
        holder[key] = value[:cut] + rng.choice(_STRANGE_TEXTS) + value[cut:]
    elif kind < 0.65:
        del holder[key]
    elif kind < 0.8:
        other, place = rng.choice(places)
        if place in other if isinstance(other, dict) else place < len(other):
            holder[key] = json.loads(json.dumps(other[place]))
    elif kind < 0.9 and isinstance(holder, list):
        holder.insert(key, json.loads(json.dumps(value)))
    elif isinstance(holder, dict) and kind < 0.95:
        holder[rng.choice(_STRANGE_TEXTS) or key + "_"] = holder.pop(key)
    elif others:
        try:
            holder[key] = json.loads(rng.choice(others))
        except (ValueError, RecursionError):
            holder[key] = None


def _changed_bytes(data: bytearray, rng: random.Random, others: tuple[bytes, ...]) -> bytes:
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        at = rng.randrange(len(data) + 1)
        kind = rng.randrange(7)
        if kind == 0 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[at:at] = bytes(rng.choices(range(256), k=rng.choice((1, 2, 8))))
        elif kind == 2:
            del data[at : at + rng.choice((1, 2, 8, 64))]
        elif kind == 3:
            del data[at:]
        elif kind == 4:
            text = str(rng.choice(_STRANGE_VALUES)).encode("utf-8", "surrogatepass")
            data[at:at] = text[:400]
        elif kind == 5:
            block = data[at : at + rng.choice((1, 8, 64))]
            data[at:at] = block
        elif others:
            other = rng.choice(others)
            begin = rng.randrange(len(other) + 1)
            data[at : at + 16] = other[begin : begin + 16]
    return bytes(data)
