"""A program that knows optimum-intel only, and gives its OpenVINO an extension.

    run_optimum.py MODEL_FOLDER DEVICE [EXTENSION]

Prints the tokens that follow a prompt, and the number of submodels.
"""

import json
import sys

from optimum.intel import OVModelForCausalLM
from optimum.intel.openvino import modeling_base
from transformers import AutoTokenizer

folder, device, *extensions = sys.argv[1:]
for extension in extensions:
    modeling_base.core.add_extension(extension)
model = OVModelForCausalLM.from_pretrained(
    folder, device=device, ov_config={"INFERENCE_PRECISION_HINT": "f32"}
)
prompt = AutoTokenizer.from_pretrained(folder)("the cat sat on", return_tensors="pt")
print(
    json.dumps(
        {
            "tokens": model.generate(**prompt, max_new_tokens=10, do_sample=False).tolist(),
            "submodels": model.request.get_compiled_model().get_property("HETERO_NUMBER_OF_SUBMODELS"),
            "modules": sorted(name for name in sys.modules if name.startswith("ov_autoplace")),
        }
    )
)
