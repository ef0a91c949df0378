"""A CPU that computes in bf16 answers attention with NaN where the mask is an input of the model.

Expected: ``softmax(q k' + mask) v`` up to the rounding of bf16. What happens: NaN, or errors as large as the
result. It is right with an operation between the input and the sum, or with ``SNIPPETS_MODE=DISABLE``.
"""

import sys

import numpy as np
import openvino as ov
from openvino import opset13 as ops

random = np.random.default_rng(0)
values = [random.standard_normal((1, 2, 16, 64)).astype(np.float32) for _ in range(3)]
values.append(np.zeros((1, 1, 1, 16), np.float32))
q, k, v, mask = inputs = [ops.parameter(list(value.shape), np.float32) for value in values]
scores = ops.softmax(ops.add(ops.matmul(q, k, False, True), mask), -1)
model = ov.Model([ops.matmul(scores, v, False, False)], inputs)

core = ov.Core()
right = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(values)[0]
for more in ({"SNIPPETS_MODE": "DISABLE"}, {}):
    answer = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "bf16", **more})(values)[0]
    error = np.abs(answer - right).max() / np.abs(right).max()
    print(f"OpenVINO {ov.__version__}: in bf16 with {more or 'default properties'} the error is {error:.2g}")
sys.exit(1 if error < 0.1 else 0)
