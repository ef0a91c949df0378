"""With one thread, a synchronous inference that fails raises nothing.

Expected: ``infer`` raises, as it does on two threads. What happens: it returns the outputs of the inference
before.
"""

import sys

import numpy as np
import openvino as ov
from openvino import opset13 as ops

x, shape = ops.parameter([2, -1], np.float32), ops.parameter([2], np.int64)
model = ov.Model([ops.reshape(ops.tanh(x), shape, False)], [x, shape])


def loses(threads: int) -> bool:
    """Whether a reshape of 12 numbers to 5 x 7 succeeds."""
    compiled = ov.Core().compile_model(model, "CPU", {"INFERENCE_NUM_THREADS": threads})
    request = compiled.create_infer_request()
    request.infer([np.ones((2, 6), np.float32), np.array([3, 4])])
    try:
        answer = request.infer([np.ones((2, 6), np.float32), np.array([5, 7])])[0]
    except RuntimeError:
        return False
    print(f"OpenVINO {ov.__version__}: with {threads} thread 12 numbers became 5 x 7: {answer.shape}")
    return True


sys.exit(0 if loses(1) and not loses(2) else 1)
