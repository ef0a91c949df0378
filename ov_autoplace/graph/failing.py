"""Whether an inference of a model can fail once its inputs fit, and whether compiling it can."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain
from math import prod

import openvino as ov

__all__ = ["can_crash_on_one_thread", "can_fail", "halves_threads"]

# What a CPU multiplies matrices for.
_PRODUCTS = frozenset({"Einsum", "MatMul"})
# What it merges with nothing before or after it, unless it changes nothing and is removed.
_APART = frozenset({"Concat", "Gather", "Split", "VariadicSplit"})
_INPUTS = frozenset({"Parameter", "ReadValue"})
_CUTS = frozenset({"Gather", "Slice", "Split", "StridedSlice", "VariadicSplit"})
# What changes no value of a tensor.
_MOVES = frozenset({"Convert", "Reshape", "Squeeze", "Unsqueeze"})
# Ops whose kernels take any values. Others look at values while they run, and refuse some: indices out of
# range, lengths, axes that are data. What is not here counts as one of those.
_TAKES_ANYTHING = frozenset({
    "Abs", "Acos", "Acosh", "Add", "Asin", "Asinh", "Atan", "Atanh", "AvgPool", "BatchNormInference",
    "Broadcast", "Ceiling", "Clamp", "Concat", "Constant", "Convert", "ConvertLike", "Convolution",
    "ConvolutionBackpropData", "Cos", "Cosh", "DepthToSpace", "Divide", "Elu", "Equal", "Erf", "Exp",
    "FakeQuantize", "Floor", "FloorMod", "GRUCell", "GRUSequence", "Gather", "Gelu", "Greater",
    "GreaterEqual", "GroupConvolution", "GroupConvolutionBackpropData", "GroupNormalization", "HSigmoid",
    "HSwish", "HardSigmoid", "Interpolate", "LRN", "LSTMCell", "LSTMSequence", "Less", "LessEqual", "Log",
    "LogSoftmax", "LogicalAnd", "LogicalNot", "LogicalOr", "LogicalXor", "MVN", "MatMul", "MaxPool",
    "Maximum", "Minimum", "Mish", "Mod", "Multiply", "Negative", "NormalizeL2", "NotEqual", "PRelu",
    "Pad", "Parameter", "Power", "RMS", "RNNCell", "RNNSequence", "ReduceL1", "ReduceL2",
    "ReduceLogicalAnd", "ReduceLogicalOr", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd",
    "ReduceSum", "Relu", "Reshape", "Result", "Round", "ScaledDotProductAttention", "Select", "Selu",
    "ShapeOf", "ShuffleChannels", "Sigmoid", "Sign", "Sin", "Sinh", "Slice", "SoftPlus", "SoftSign",
    "Softmax", "SpaceToDepth", "Split", "Sqrt", "SquaredDifference", "Squeeze", "StridedSlice",
    "Subtract", "Swish", "Tan", "Tanh", "Tile", "TopK", "Transpose", "Unsqueeze", "VariadicSplit",
})  # fmt: skip


def can_fail(model: ov.Model) -> bool:
    """Whether values of its inputs could make an inference raise an exception.

    A dynamic shape is computed as the model runs, which can fail; so can ops that check values, and all whose
    code is not OpenVINO's own. Ops that are not known to take anything count as failing.

    Args:
        model: Is not modified.
    """
    return any(
        op.get_type_name() not in _TAKES_ANYTHING
        or not op.get_type_info().version_id.startswith("opset")
        or any(op.get_output_partial_shape(i).is_dynamic for i in range(op.get_output_size()))
        for op in model.get_ops()
    )


def can_crash_on_one_thread(model: ov.Model) -> bool:
    """Whether OpenVINO's compiler could end the process that compiles a model for one thread of one stream.

    There it merges products of matrices that follow each other, with what is between and after them, into one
    kernel, which ends before an op that joins or cuts tensors. It crashes on some graphs in which something
    that it merges has several readers, or other inputs than the op before it and constants. Plain chains have
    neither: with seven releases none of 9,000 random ones crashed, nor, with four, did any of 10,000 networks
    of chains that end at joins and cuts. Of the other chains one in sixteen did.

    Args:
        model: Is not modified.
    """
    ops = model.get_ordered_ops()
    is_product = [op.get_type_name() in _PRODUCTS for op in ops]
    if sum(is_product) < 2:
        return False
    is_apart = [_is_apart(op) for op in ops]
    inputs = [[i for i, _ in own] for own in _inputs(ops)]
    readers = Counter(chain.from_iterable(inputs))
    apart_readers = Counter(chain.from_iterable(inputs[i] for i in range(len(ops)) if is_apart[i]))
    is_constant = _constant(ops, inputs)
    products: list[int] = []  # the most on a way to an op that could be merged, itself among them
    for own, one, apart in zip(inputs, is_product, is_apart, strict=True):
        products.append(0 if apart else max((products[i] for i in own), default=0) + one)
    leads_on = [False] * len(ops)  # to a product
    for i in reversed(range(len(ops))):
        for k in inputs[i]:
            leads_on[k] |= is_product[i] or (leads_on[i] and not is_apart[i])
    return any(
        readers[i] > (1 if leads_on[i] else 1 + apart_readers[i])
        or sum(not is_constant[k] for k in inputs[i]) > 1
        for i in range(len(ops))
        if not is_constant[i] and (products[i] > 1 or (products[i] == 1 and leads_on[i]))
    )


def halves_threads(model: ov.Model) -> bool:
    """Whether OpenVINO may merge a gated linear unit, as language models have them, into one kernel.

    It does so for bf16 and f16 on processors with tiles for matrices (AMX). That kernel divides by half the
    number of threads, so that compiling it for a single one ends the process
    (https://github.com/openvinotoolkit/openvino/issues/28550).

    Args:
        model: Is not modified.

    Returns:
        Whether a product of matrices reads ``activation(x A) * (x B)``; ``A`` and ``B`` may be parts of one
        matrix.
    """
    ops = model.get_ordered_ops()
    inputs = _inputs(ops)
    is_constant = _constant(ops, [[i for i, _ in own] for own in inputs])
    gated: set[int] = set()
    # Which x and which matrix are behind a value, an output of an op, if nothing else is.
    behind: dict[tuple[int, int], tuple[int, tuple[int, ...]]] = {}
    for own, op in enumerate(ops):
        kind = op.get_type_name()
        computed = [value for value in inputs[own] if not is_constant[value[0]]]
        found = {behind.get(value) for value in computed}
        if kind == "MatMul":
            if inputs[own][0][0] in gated:
                return True
            if len(computed) == 1:
                behind[own, 0] = computed[0][0], (own,)
        elif len(found) == 1 and (one := found.pop()) is not None:
            for i in range(op.get_output_size()):
                behind[own, i] = (one[0], (*one[1], own, i)) if kind in _CUTS else one
        else:
            is_unit = kind == "Multiply" and None not in found and len({one[0] for one in found if one}) == 1
            if is_unit or (kind in _MOVES and inputs[own][0][0] in gated):
                gated.add(own)
    return False


def _inputs(ops: Sequence[ov.Node]) -> list[list[tuple[int, int]]]:
    """Of each op, the ops that it reads, by their positions, and which of their outputs."""
    position = {op.get_instance_id(): i for i, op in enumerate(ops)}
    return [
        [(position[value.get_node().get_instance_id()], value.get_index()) for value in op.input_values()]
        for op in ops
    ]


def _constant(ops: Sequence[ov.Node], inputs: Sequence[Sequence[int]]) -> list[bool]:
    """Whether each op is computed from constants alone, by the positions of the ops that it reads."""
    found: list[bool] = []
    for op, own in zip(ops, inputs, strict=True):
        found.append(all(found[i] for i in own) and op.get_type_name() not in _INPUTS)
    return found


def _is_apart(op: ov.Node) -> bool:
    if op.get_type_name() not in _APART:
        return False
    before, after = op.get_input_partial_shape(0), op.get_output_partial_shape(0)
    return bool(before.is_static and after.is_static and prod(before.to_shape()) != prod(after.to_shape()))
