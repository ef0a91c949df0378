"""A model that reserves its cores stops all later compilations of the process.

Expected: other models run on what is left, and there is something left where the model says no number of
threads. What happens: it takes all cores, and no other model can be compiled while it lives, in any Core.
"""

import sys

import openvino as ov
from openvino import opset13 as ops

x = ops.parameter([8])
model = ov.Model([ops.relu(x)], [x])
reserving = ov.Core().compile_model(model, "CPU", {"ENABLE_CPU_RESERVATION": True})
try:
    ov.Core().compile_model(model, "CPU")
except RuntimeError as error:
    print(f"OpenVINO {ov.__version__}: {str(error).strip().splitlines()[-1]}")
    sys.exit(0)
print(f"OpenVINO {ov.__version__}: compiled")
sys.exit(1)
