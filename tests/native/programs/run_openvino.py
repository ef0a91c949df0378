"""A program that knows OpenVINO only.

    run_openvino.py MODEL INPUT.npy OUTPUT.npy OPTIONS

The options are a JSON object: ``device``, ``extension`` (a path), ``by_path`` (compile the path), ``config``.
"""

import json
import sys

import numpy as np
import openvino as ov

model, source, target, options = sys.argv[1:]
options = json.loads(options)
core = ov.Core()
if "extension" in options:
    core.add_extension(options["extension"])
config = {"INFERENCE_PRECISION_HINT": "f32"} | options.get("config", {})
inputs = np.load(source)
if options.get("by_path"):
    compiled = core.compile_model(model, options["device"], config)
else:
    compiled = core.compile_model(core.read_model(model), options["device"], config)
np.save(target, compiled([inputs])[0])
print(
    json.dumps(
        {
            "devices": compiled.get_property("EXECUTION_DEVICES"),
            "submodels": compiled.get_property("HETERO_NUMBER_OF_SUBMODELS"),
            "from_cache": compiled.get_property("LOADED_FROM_CACHE"),
            "modules": sorted(name for name in sys.modules if name.startswith("ov_autoplace")),
        }
    )
)
