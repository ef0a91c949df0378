"""Whether an inference of a model can fail, once it was compiled and its inputs fit."""

from __future__ import annotations

import openvino as ov

__all__ = ["can_fail"]

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
