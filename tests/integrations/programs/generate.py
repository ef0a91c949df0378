"""Goes on with a sentence with optimum-intel; generate.py FOLDER DEVICE PROPERTIES."""

import json
import sys

from optimum.intel import OVModelForCausalLM
from transformers import AutoTokenizer

import ov_autoplace  # noqa: F401 - makes the device name AUTOPLACE known

folder, device, properties = sys.argv[1:]
model = OVModelForCausalLM.from_pretrained(folder, device=device, ov_config=json.loads(properties))
prompt = AutoTokenizer.from_pretrained(folder)("the cat sat on", return_tensors="pt")
tokens = model.generate(**prompt, max_new_tokens=10, do_sample=False)
compiled = model.request.get_compiled_model()
print(json.dumps({"answer": tokens.tolist(), "devices": compiled.get_property("EXECUTION_DEVICES")}))
