"""After a request that fails, a model of dynamic shapes refuses requests or answers them wrongly.

Expected: an inference that fails does not change what later ones compute. What happens: operations keep the
sizes of the failed inference where the next one has the shapes of the last one that succeeded. A new request
of the same compiled model does not help.
"""

import sys
from contextlib import suppress

import numpy as np
import openvino as ov
from openvino import opset13 as ops

x, y = ops.parameter([-1, -1], np.float32), ops.parameter([-1, -1], np.float32)
model = ov.Model([ops.softmax(ops.tanh(x), 1), ops.add(ops.exp(x), ops.softmax(y, 1))], [x, y])
wide, high = np.ones((2, 6), np.float32), np.ones((6, 2), np.float32)

found = []
for bad in ([high, wide], [wide, high]):  # cannot be added
    compiled = ov.Core().compile_model(model, "CPU")
    compiled.create_infer_request().infer([wide, wide])
    with suppress(RuntimeError):
        compiled.create_infer_request().infer(bad)
    try:
        found.append(str(compiled.create_infer_request().infer([wide, wide])[0].shape))
    except RuntimeError:
        found.append("refused")
print(f"OpenVINO {ov.__version__}: what has the shape (2, 6) before a failed request is {found} after it")
sys.exit(0 if set(found) != {"(2, 6)"} else 1)
