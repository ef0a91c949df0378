"""Small random models with everything that HETERO's partitioning looks at: shared constants, ops with
several outputs, inner results, direct Parameter-to-Result edges, tensors that are read twice."""

from __future__ import annotations

import numpy as np
import openvino as ov
import openvino.opset13 as ops

__all__ = ["random_model"]

_ROWS, _COLUMNS = 2, 4


def random_model(seed: int, size: int = 20, shared_constants: int = 2, locality: int = 6) -> ov.Model:
    """A random model whose op names are unique.

    Args:
        seed: Of the structure.
        size: Number of ops that are neither Parameter, Constant nor Result.
        shared_constants: Constants that several ops read.
        locality: Ops read values from this many latest ones.
    """
    random = np.random.default_rng(seed)
    shape = [_ROWS, _COLUMNS]
    parameters = [ops.parameter(shape, name=f"input{i}") for i in range(int(random.integers(1, 4)))]
    values: list[ov.Output] = [p.output(0) for p in parameters]
    shared = [
        ops.constant(random.standard_normal(shape).astype(np.float32), name=f"shared{i}")
        for i in range(shared_constants)
    ]

    def recent() -> ov.Output:
        return values[-1 - int(random.integers(min(locality, len(values))))]

    for i in range(size):
        kind = random.choice(["unary", "binary", "shared", "private", "matmul", "concat", "split", "topk"])
        if kind == "unary":
            made = ops.relu(recent()) if random.random() < 0.5 else ops.sigmoid(recent())
        elif kind == "binary":
            made = ops.add(recent(), recent())
        elif kind == "shared" and shared:
            made = ops.multiply(recent(), shared[int(random.integers(len(shared)))])
        elif kind == "matmul":
            weights = ops.constant(np.eye(_COLUMNS, dtype=np.float32), name=f"weights{i}")
            made = ops.matmul(recent(), weights, False, False)
        elif kind == "concat":
            pair = ops.concat([recent(), recent()], 1)
            pair.set_friendly_name(f"op{i}_concat")
            half = ops.constant(np.ones((2 * _COLUMNS, _COLUMNS), np.float32), name=f"half{i}")
            made = ops.matmul(pair, half, False, False)
        elif kind == "split":
            axis = ops.constant(np.int64(1), name=f"axis{i}")
            parts = ops.split(recent(), axis, 2)
            parts.set_friendly_name(f"op{i}_split")
            made = ops.concat([parts.output(1), parts.output(0)], 1)
        elif kind == "topk":
            k = ops.constant(np.int64(_COLUMNS), name=f"k{i}")
            made = ops.topk(recent(), k, 1, "max", "value")
        else:
            private = ops.constant(random.standard_normal(shape).astype(np.float32), name=f"private{i}")
            made = ops.add(recent(), private)
        made.set_friendly_name(f"op{i}")
        values.append(made.output(0))

    unread = [value for value in values if not value.get_target_inputs()]
    extra = [value for value in values if value.get_target_inputs() and random.random() < 0.05]
    results = [ops.result(value, name=f"result{i}") for i, value in enumerate(unread + extra)]
    if shared and random.random() < 0.2:
        results.append(ops.result(shared[0], name="constant_result"))
    return ov.Model(results, parameters, f"random{seed}")
