"""The op types that policies tell apart: a fixed list, so that one checkpoint serves every model.

The order is part of every checkpoint; new types are appended, never inserted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

__all__ = ["OP_TYPES", "UNKNOWN", "op_type_indices", "vocabulary_hash"]

UNKNOWN = 0
"""Index of every type that is not listed, and of all ops of a table without types."""

_LISTED = """
    Abs Acos Acosh AdaptiveAvgPool AdaptiveMaxPool Add Asin Asinh Assign Atan Atanh AvgPool BatchNormInference
    BatchToSpace BinaryConvolution BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Broadcast Bucketize
    CTCGreedyDecoder CTCGreedyDecoderSeqLen CTCLoss Ceiling Clamp Concat Constant Convert ConvertLike
    ConvertPromoteTypes Convolution ConvolutionBackpropData Cos Cosh CumSum DFT DeformableConvolution
    DeformablePSROIPooling DepthToSpace DetectionOutput Divide Einsum Elu EmbeddingBagOffsets
    EmbeddingBagOffsetsSum EmbeddingBagPacked EmbeddingBagPackedSum EmbeddingSegmentsSum Equal Erf Exp
    ExperimentalDetectronDetectionOutput ExperimentalDetectronGenerateProposalsSingleImage
    ExperimentalDetectronPriorGridGenerator ExperimentalDetectronROIFeatureExtractor
    ExperimentalDetectronTopKROIs ExtractImagePatches Eye FakeConvert FakeQuantize Floor FloorMod
    FullyConnected GRUCell GRUSequence Gather GatherElements GatherND GatherTree Gelu GenerateProposals
    Greater GreaterEqual GridSample GroupConvolution GroupConvolutionBackpropData GroupNormalization
    HSigmoid HSwish HardSigmoid I420toBGR I420toRGB IDFT IRDFT ISTFT Identity If Interpolate Inverse
    IsFinite IsInf IsNaN LRN LSTMCell LSTMSequence LayerNormalization Less LessEqual Log LogSoftmax
    LogicalAnd LogicalNot LogicalOr LogicalXor Loop MVN MatMul MatrixNms MaxPool Maximum Minimum Mish Mod
    MulticlassNms Multinomial Multiply NV12toBGR NV12toRGB Negative NonMaxSuppression NonZero NormalizeL2
    NotEqual OneHot PRelu PSROIPooling Pad Parameter Power PriorBox PriorBoxClustered Proposal RDFT RMS
    RMSNorm RNNCell RNNSequence ROIAlign ROIAlignRotated ROIPooling RandomUniform Range ReadValue ReduceL1
    ReduceL2 ReduceLogicalAnd ReduceLogicalOr ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum
    RegionYolo Relu ReorgYolo Reshape Result Reverse ReverseSequence Roll Round STFT
    ScaledDotProductAttention ScatterElementsUpdate ScatterNDUpdate ScatterUpdate SearchSorted SegmentMax
    Select Selu ShapeOf ShuffleChannels Sigmoid Sign Sin Sinh Slice SliceScatter SoftPlus SoftSign Softmax
    SpaceToBatch SpaceToDepth SparseFillEmptyRows Split Sqrt SquaredDifference Squeeze StridedSlice
    StringTensorPack StringTensorUnpack Subtract Swish Tan Tanh TensorIterator Tile TopK Transpose Unique
    Unsqueeze VariadicSplit
"""

OP_TYPES: tuple[str, ...] = ("unknown", *_LISTED.split())

_INDEX = {name: i for i, name in enumerate(OP_TYPES)}


def op_type_indices(names: Sequence[str] | None, count: int) -> NDArray[np.int64]:
    """Index of each of ``count`` op types, ``int64[count]``; all unknown when there are no names."""
    if names is None:
        return np.zeros(count, dtype=np.int64)
    return np.fromiter(map(_INDEX.get, names, repeat(UNKNOWN)), dtype=np.int64, count=count)


def vocabulary_hash() -> str:
    """Identifies the list, so that a checkpoint made with another one is refused."""
    return hashlib.sha256("\n".join(OP_TYPES).encode()).hexdigest()[:16]
