"""Floating point operations of one op, from its type and the shapes that it reads and writes.

A multiply-add counts two. The numbers are the textbook counts of the direct algorithm; ops that only
move data count 0 and are costed by their bytes. Every op type that carries run time has a rule here;
an unknown one counts one operation per output element.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import log2, prod
from typing import Any

from ov_autoplace.graph.records import OpRecord

__all__ = ["OpSizes", "flops_of"]

Shape = tuple[int, ...]


class OpSizes:
    """What a rule may look at; worked out when a rule looks, since most look at one number."""

    __slots__ = ("_record", "_records")

    def __init__(self, record: OpRecord, records: Sequence[OpRecord]) -> None:
        """The sizes of ``record``, which reads outputs of others among ``records``."""
        self._record = record
        self._records = records

    @property
    def inputs(self) -> list[Shape]:
        """Shape of each input, without unknown dimensions."""
        return [self._records[source].shapes[port].dims for source, port in self._record.sources]

    @property
    def outputs(self) -> list[Shape]:
        """Shape of each output, without unknown dimensions."""
        return [shape.dims for shape in self._record.shapes]

    @property
    def written(self) -> int:
        """Elements of the first output."""
        return self._record.shapes[0].elements if self._record.shapes else 0

    @property
    def read(self) -> int:
        """Elements of the first input."""
        if not self._record.sources:
            return 0
        source, port = self._record.sources[0]
        return self._records[source].shapes[port].elements

    def attributes(self) -> Mapping[str, Any]:
        """The op's attributes; reading them is not free, so rules do it only when they must."""
        attributes: Mapping[str, Any] = self._record.node.get_attributes()
        return attributes


Rule = Callable[[OpSizes], float]


def flops_of(op_type: str, sizes: OpSizes) -> float:
    """Floating point operations of one op of type ``op_type``."""
    rule = _RULES.get(op_type)
    return float(rule(sizes)) if rule is not None else float(sizes.written)


def _per_output(operations: float) -> Rule:
    return lambda sizes: operations * sizes.written


def _per_input(operations: float) -> Rule:
    return lambda sizes: operations * sizes.read


def _convolution(skipped: int, direct: bool = True) -> Rule:
    """Two operations per weight of one output channel (one input channel for the transposed kinds).

    Args:
        skipped: Leading dimensions of the weights that a single result does not run over: the output
            channels, and the group before them.
        direct: Count per output element; ``False`` counts per input element (transposed convolution).
    """

    def rule(sizes: OpSizes) -> float:
        kernel = prod(sizes.inputs[1][skipped:])
        return 2.0 * kernel * (sizes.written if direct else sizes.read)

    return rule


def _deformable_convolution(weights: int) -> Rule:
    """A convolution whose every input sample is interpolated between four pixels (8 operations)."""

    def rule(sizes: OpSizes) -> float:
        kernel = prod(sizes.inputs[weights][1:])
        return 2.0 * kernel * sizes.written + 8.0 * kernel * sizes.written / max(1, sizes.outputs[0][1])

    return rule


def _matmul(sizes: OpSizes) -> float:
    left = sizes.inputs[0]
    if not left:
        return 2.0 * sizes.written
    # A vector is never transposed, whatever the attribute says.
    inner = left[-2] if len(left) > 1 and bool(sizes.attributes()["transpose_a"]) else left[-1]
    return 2.0 * inner * sizes.written


def _attention(sizes: OpSizes) -> float:
    """Q x K^T, scale, softmax, and the product with V: ``[.., L, E] x [.., S, E] x [.., S, Ev]``."""
    query, key = sizes.inputs[0], sizes.inputs[1]
    scores = prod(query[:-1]) * key[-2]
    return 2.0 * scores * query[-1] + 7.0 * scores + 2.0 * scores * sizes.outputs[0][-1]


def _pooling(sizes: OpSizes) -> float:
    return float(sizes.written * prod(sizes.attributes()["kernel"]))


def _einsum(sizes: OpSizes) -> float:
    """Two operations per point of the whole index space, as in a single contraction."""
    equation = str(sizes.attributes()["equation"]).replace(" ", "")
    extent: dict[str, int] = {}
    for labels, shape in zip(equation.split("->")[0].split(","), sizes.inputs, strict=True):
        if "." in labels:  # an ellipsis: fall back to the product of the two largest operands' elements
            return (
                2.0 * max(map(prod, sizes.inputs)) * max(1, sizes.outputs[0][-1] if sizes.outputs[0] else 1)
            )
        extent.update(zip(labels, shape, strict=True))
    return 2.0 * prod(extent.values())


def _recurrent(gates: int, sequence: bool) -> Rule:
    """``gates`` products of the step's input and of the hidden state, per step, sample and direction.

    Inputs are X, H, (C for LSTM,) (lengths for sequences,) W, R, B. The weights of all gates and
    directions together are W ``[(D,) gates * H, I]`` and R ``[(D,) gates * H, H]``; a step uses each once.
    """

    def rule(sizes: OpSizes) -> float:
        first = 2 + (gates == 4) + sequence
        data = sizes.inputs[0]
        samples = data[0] * (data[1] if sequence else 1)
        weights = sizes.inputs[first : first + 2]
        rows = prod(weights[0][:-1])
        # The gates' activations and the element-wise update: about ten operations per row.
        return samples * (2.0 * sum(map(prod, weights)) + 10.0 * rows)

    return rule


def _interpolate(sizes: OpSizes) -> float:
    mode = str(sizes.attributes().get("mode", "linear")).lower()
    operations = {"nearest": 0.0, "cubic": 32.0, "bilinear_pillow": 16.0, "bicubic_pillow": 32.0}
    return operations.get(mode, 8.0) * sizes.written


def _sorting(sizes: OpSizes) -> float:
    return sizes.read * log2(max(2, sizes.inputs[0][-1] if sizes.inputs[0] else 2))


def _non_max_suppression(sizes: OpSizes) -> float:
    """Sorting all scores, then about 16 operations for each kept box against each box of its class."""
    scores = sizes.inputs[1] if len(sizes.inputs) > 1 and sizes.inputs[1] else (1,)
    boxes = scores[-1]
    kept = sizes.outputs[0][0] if sizes.outputs[0] else 1
    return prod(scores) * log2(max(2, boxes)) + 16.0 * kept * boxes


def _embedding(sizes: OpSizes) -> float:
    """One addition per gathered value: as many rows as there are indices."""
    row = prod(sizes.inputs[0][1:])
    return float(row * (prod(sizes.inputs[1]) if len(sizes.inputs) > 1 else 1))


# Operations per element of the first output.
_PER_OUTPUT: dict[float, str] = {
    0: """Parameter Constant Result ReadValue Assign ShapeOf Reshape Squeeze Unsqueeze Transpose Concat Split
        VariadicSplit StridedSlice Slice SliceScatter Gather GatherElements GatherND GatherTree ScatterUpdate
        ScatterElementsUpdate ScatterNDUpdate Broadcast Tile Pad Convert ConvertLike OneHot NonZero Range Roll
        Identity Reverse ReverseSequence DepthToSpace SpaceToDepth BatchToSpace SpaceToBatch ShuffleChannels
        ExtractImagePatches Col2Im Eye Bucketize Unique SearchSorted""",
    2: "BatchNormInference PRelu LeakyRelu FakeQuantize FakeConvert HardSigmoid Clamp",
    4: "NormalizeL2 RMS GRN Elu Selu Exp Log Sqrt Sin Cos Tan Power SquaredDifference",
    5: "Softmax LogSoftmax",
    8: "MVN GroupNormalization Sigmoid Tanh Swish Gelu Erf HSwish HSigmoid Mish SoftPlus",
    10: "LRN",
    12: "ROIAlign ROIPooling PSROIPooling DeformablePSROIPooling GridSample",
}
# Operations per element of the first input.
_PER_INPUT: dict[float, str] = {
    1: """ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd ReduceLogicalAnd ReduceLogicalOr
        AdaptiveAvgPool AdaptiveMaxPool""",
    2: "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp CumSum",
}

_RULES: dict[str, Rule] = {
    "Convolution": _convolution(1),
    "BinaryConvolution": _convolution(1),
    "GroupConvolution": _convolution(2),
    "ConvolutionBackpropData": _convolution(1, direct=False),
    "GroupConvolutionBackpropData": _convolution(2, direct=False),
    "DeformableConvolution": _deformable_convolution(2),
    "MatMul": _matmul,
    "FullyConnected": _matmul,
    "Einsum": _einsum,
    "ScaledDotProductAttention": _attention,
    "LSTMCell": _recurrent(4, sequence=False),
    "GRUCell": _recurrent(3, sequence=False),
    "AUGRUCell": _recurrent(3, sequence=False),
    "RNNCell": _recurrent(1, sequence=False),
    "LSTMSequence": _recurrent(4, sequence=True),
    "GRUSequence": _recurrent(3, sequence=True),
    "AUGRUSequence": _recurrent(3, sequence=True),
    "RNNSequence": _recurrent(1, sequence=True),
    "MaxPool": _pooling,
    "AvgPool": _pooling,
    "Interpolate": _interpolate,
    "TopK": _sorting,
    "NonMaxSuppression": _non_max_suppression,
    "MulticlassNms": _non_max_suppression,
    "MatrixNms": _non_max_suppression,
    "EmbeddingBagOffsetsSum": _embedding,
    "EmbeddingBagOffsets": _embedding,
    "EmbeddingBagPackedSum": _embedding,
    "EmbeddingBagPacked": _embedding,
    "EmbeddingSegmentsSum": _embedding,
    **dict.fromkeys(["DFT", "IDFT", "RDFT", "IRDFT", "STFT"], lambda sizes: 5.0 * _sorting(sizes)),
    **{name: _per_output(count) for count, names in _PER_OUTPUT.items() for name in names.split()},
    **{name: _per_input(count) for count, names in _PER_INPUT.items() for name in names.split()},
}
