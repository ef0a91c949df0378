"""Models with the op ``autoplace::Schedule``, made by hand, so that its tests need nothing of the package."""

from __future__ import annotations

import ctypes
import itertools
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np
import openvino as ov
from openvino import opset13 as ops
from openvino.utils.node_factory import NodeFactory

import ov_autoplace

__all__ = [
    "CPU_LANES",
    "DATA",
    "OUTER",
    "Part",
    "compile_op",
    "core_with_op",
    "data",
    "failing_part",
    "profile",
    "relu_part",
    "schedule",
    "tower",
]

IN_CALLER = {"INFERENCE_NUM_THREADS": "1", "NUM_STREAMS": "0", "INFERENCE_PRECISION_HINT": "f32"}
CPU_LANES = (("CPU", IN_CALLER), ("CPU", IN_CALLER))
OUTER = {
    "INFERENCE_NUM_THREADS": "2",
    "NUM_STREAMS": "1",
    "ENABLE_CPU_PINNING": "NO",
    "INFERENCE_PRECISION_HINT": "f32",
}
DATA = -1
_SHAPE = [4, 8]
_names = itertools.count()


class Part(NamedTuple):
    """A submodel: its inputs are pairs of a submodel's number, or ``DATA``, and an output of that."""

    model: ov.Model
    sources: Sequence[tuple[int, int]]
    lane: int = 0
    rank: int = 0


def core_with_op() -> ov.Core:
    """A Core that knows the op."""
    core = ov.Core()
    core.add_extension(ov_autoplace.extension_path())
    return core


def _node_factory() -> NodeFactory:
    factory = NodeFactory()
    factory.add_extension(ov_autoplace.extension_path())
    return factory


def _files(model: ov.Model) -> list[np.ndarray]:
    """Text and weights of a model, at least one byte each."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.xml"
        ov.save_model(model, path, compress_to_fp16=False)
        files = [np.fromfile(file, np.uint8) for file in (path, path.with_suffix(".bin"))]
    return [file if file.size else np.zeros(1, np.uint8) for file in files]


def _flat(shapes: Sequence[ov.PartialShape]) -> list[int]:
    numbers = []
    for shape in shapes:
        if shape.rank.is_dynamic:
            numbers.append(-1)
            continue
        sizes = [size.get_length() if size.is_static else -1 for size in shape]
        numbers += [len(sizes), *sizes]
    return numbers


def schedule(
    inputs: Sequence[tuple[Sequence[int], Any]],
    parts: Sequence[Part],
    results: Sequence[tuple[int, int]],
    lanes: Sequence[tuple[str, Mapping[str, str]]] = CPU_LANES,
    name: str = "",
    attributes: Mapping[str, object] | None = None,
) -> ov.Model:
    """A model that is one op.

    Args:
        inputs: Shape and type of each data input.
        parts: In topological order.
        results: What the op's outputs are, like the sources of a part.
        lanes: Device and properties of each.
        name: Friendly name of the op; a new one, if none is given.
        attributes: They replace attributes of the op as they would be.
    """
    parameters = [ops.parameter(ov.PartialShape([*shape]), kind) for shape, kind in inputs]
    files = [ops.constant(file) for part in parts for file in _files(part.model)]
    shapes = [ov.PartialShape([*shape]) for shape, _ in inputs]
    outputs = [
        (shapes[port], parameters[port].get_element_type())
        if source == DATA
        else (
            parts[source].model.outputs[port].partial_shape,
            parts[source].model.outputs[port].get_element_type(),
        )
        for source, port in results
    ]
    plan = {
        "format": 1,
        "data_inputs": len(inputs),
        "lanes": [quote(device, safe="") for device, _ in lanes],
        "lane_properties": [
            ";".join(f"{quote(key, safe='')}={quote(value, safe='')}" for key, value in properties.items())
            for _, properties in lanes
        ],
        "submodels": [quote(part.model.get_friendly_name(), safe="") for part in parts],
        "lane_of": [part.lane for part in parts],
        "rank": [part.rank for part in parts],
        "sources": [
            number
            for part in parts
            for number in (len(part.sources), *itertools.chain.from_iterable(part.sources))
        ],
        "results": [*itertools.chain.from_iterable(results)],
        "output_types": [kind.to_string() for _, kind in outputs],
        "input_shapes": _flat(shapes),
        "output_shapes": _flat([shape for shape, _ in outputs]),
    }
    values = [node.output(0) for node in (*parameters, *files)]
    op = _node_factory().create("Schedule", values, plan | dict(attributes or {}))
    op.set_friendly_name(name or f"schedule_{next(_names)}")
    return ov.Model([ops.result(output) for output in op.outputs()], parameters, op.get_friendly_name())


def compile_op(model: ov.Model | Path, **properties: str) -> ov.CompiledModel:
    """By a new Core that knows the op, on CPU."""
    return core_with_op().compile_model(model, "CPU", {**OUTER, **properties})


def profile(name: str) -> dict[str, Any]:
    """What the library knows of the op of this name; empty if it knows none."""
    library = ctypes.CDLL(ov_autoplace.extension_path())
    ask = library.ov_autoplace_profile
    ask.restype, ask.argtypes = ctypes.c_size_t, [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t]
    needed = ask(name.encode(), None, 0)
    buffer = ctypes.create_string_buffer(needed + 4096)
    return json.loads(buffer.value) if needed and ask(name.encode(), buffer, len(buffer)) else {}


def data(seed: int = 0, shape: Sequence[int] = _SHAPE) -> np.ndarray:
    """Numbers around 0, f32."""
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def _model(name: str, make: Callable[..., Any], *kinds: Any) -> ov.Model:
    inputs = [ops.parameter(_SHAPE if kind is np.float32 else [1, 1], kind) for kind in kinds]
    return ov.Model([ops.result(make(*inputs))], inputs, name)


def relu_part(name: str, source: tuple[int, int] = (DATA, 0), lane: int = 0, rank: int = 0) -> Part:
    """ReLU of a tensor of 4 x 8."""
    return Part(_model(name, ops.relu, np.float32), [source], lane, rank)


def failing_part(name: str, source: tuple[int, int], index: tuple[int, int], lane: int = 0) -> Part:
    """Ones in row ``index`` of a tensor of 4 x 8; it fails while it runs if there is no such row."""

    def put_ones(values: ov.Node, row: ov.Node) -> ov.Node:
        return ops.scatter_nd_update(ops.relu(values), row, ops.constant(np.ones((1, 8), np.float32)))

    return Part(_model(name, put_ones, np.float32, np.int32), [source, index], lane)


def tower(name: str, layers: int, width: int, seed: int) -> ov.Model:
    """MatMul and ReLU in turns, batch 1."""
    random = np.random.default_rng(seed)
    x = ops.parameter([1, width], np.float32)
    value = x
    for _ in range(layers):
        weights = (random.normal(size=(width, width)) / np.sqrt(width)).astype(np.float32)
        value = ops.relu(ops.matmul(value, ops.constant(weights), False, False))
    return ov.Model([ops.result(value)], [x], name)
