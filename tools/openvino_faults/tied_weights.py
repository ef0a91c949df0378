"""A CPU multiplies wrongly where one square weight is read as it is and transposed.

Expected: ``relu(x W) W'`` as NumPy computes it. What happens: an error as large as the result.
"""

import sys

import numpy as np
import openvino as ov
from openvino import opset13 as ops

random = np.random.default_rng(0)
weights = random.standard_normal((64, 64)).astype(np.float32)
values = random.standard_normal((8, 64)).astype(np.float32)

x, shared = ops.parameter([8, 64], np.float32), ops.constant(weights)
hidden = ops.relu(ops.matmul(x, shared, False, False))
model = ov.Model([ops.matmul(hidden, shared, False, True)], [x])
compiled = ov.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})

right = np.maximum(values @ weights, 0) @ weights.T
error = np.abs(compiled(values)[0] - right).max() / np.abs(right).max()
print(f"OpenVINO {ov.__version__}: the relative error is {error:.2g}")
sys.exit(0 if error > 0.01 else 1)
