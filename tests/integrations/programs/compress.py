"""A model that NNCF made smaller: its weights, or all of it, or nothing of it.

compress.py MODEL weights|quantized|nothing DEVICE PROPERTIES
"""

import json
import sys

import nncf
import numpy as np
import openvino as ov

import ov_autoplace  # noqa: F401 - makes the device name AUTOPLACE known

path, kind, device, properties = sys.argv[1:]
core = ov.Core()
model = core.read_model(path)
model.reshape({port: [2, 8] for port in model.inputs})
random = np.random.default_rng(0)


def batch():
    return {port.any_name: random.integers(0, 2, size=(2, 8), dtype=np.int64) for port in model.inputs}


asked = batch()
if kind == "weights":
    model = nncf.compress_weights(model, mode=nncf.CompressWeightsMode.INT8_ASYM)
elif kind == "quantized":
    model = nncf.quantize(model, nncf.Dataset([batch() for _ in range(4)]), subset_size=4)
constants = [op.get_element_type() for op in model.get_ops() if op.get_type_name() == "Constant"]
compressed = sum(element_type in (ov.Type.i8, ov.Type.u8) for element_type in constants)
quantizers = sum(op.get_type_name() == "FakeQuantize" for op in model.get_ops())
compiled = core.compile_model(model, device, json.loads(properties))
answer = compiled(asked)[0]
print(
    json.dumps(
        {
            "answer": answer.tolist(),
            "devices": compiled.get_property("EXECUTION_DEVICES"),
            "compressed": compressed,
            "quantizers": quantizers,
        }
    )
)
