"""An inference that failed succeeds when it is repeated.

Expected: the same values fail again. What happens: the second time nothing is raised, on any number of
threads, and the outputs are old.
"""

import sys

import numpy as np
import openvino as ov
from openvino import opset13 as ops

x, shape = ops.parameter([-1, -1], np.float32), ops.parameter([2], np.int64)
model = ov.Model([ops.relu(ops.reshape(ops.relu(x), shape, False))], [x, shape])
request = ov.Core().compile_model(model, "CPU", {"INFERENCE_NUM_THREADS": 2}).create_infer_request()

request.infer([np.ones((2, 6), np.float32), np.array([3, 4])])
raised = []
for _ in range(3):
    try:
        request.infer([np.ones((2, 6), np.float32), np.array([5, 7])])  # 12 numbers are not 5 x 7
        raised.append(False)
    except RuntimeError:
        raised.append(True)
print(f"OpenVINO {ov.__version__}: three equal inferences that have to fail raised {raised}")
sys.exit(0 if raised[0] and not all(raised) else 1)
