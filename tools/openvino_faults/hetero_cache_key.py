"""A cache takes a model that HETERO compiled for f32 and one for bf16 for the same.

Expected: the properties of HETERO's devices are part of the cache's key. What happens: the second compile is
answered from the blob of the first; on a GPU, whose blobs hold kernels, it computes in the wrong precision.
"""

import sys
import tempfile

import openvino as ov
from openvino import opset13 as ops

x = ops.parameter([8])
model = ov.Model([ops.relu(x)], [x])
found = []
with tempfile.TemporaryDirectory() as folder:
    core = ov.Core()
    core.set_property({"CACHE_DIR": folder})
    for precision in ("f32", "bf16"):
        settings = {"DEVICE_PROPERTIES": {"CPU": {"INFERENCE_PRECISION_HINT": precision}}}
        compiled = core.compile_model(model, "HETERO:CPU", settings)
        found.append(compiled.get_property("LOADED_FROM_CACHE"))
print(f"OpenVINO {ov.__version__}: f32, then bf16 were loaded from the cache: {found}")
sys.exit(0 if found == [False, True] else 1)
