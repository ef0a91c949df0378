"""A model that takes sentences, by ops of openvino_tokenizers.

tokenize_inside.py FOLDER DEVICE PROPERTIES
"""

import json
import sys

import openvino as ov
from openvino_tokenizers import connect_models

import ov_autoplace  # noqa: F401 - makes the device name AUTOPLACE known

folder, device, properties = sys.argv[1:]
core = ov.Core()
tokenizer = core.read_model(f"{folder}/openvino_tokenizer.xml")
state = tokenizer.get_sinks()
model = connect_models(tokenizer, core.read_model(f"{folder}/openvino_model.xml"))
model.add_sinks(state)  # which connect_models of 2026.4.1 forgets
compiled = core.compile_model(model, device, json.loads(properties))
answer = compiled(["the cat sat on", "a red dog"])[0]
print(json.dumps({"answer": answer.tolist(), "devices": compiled.get_property("EXECUTION_DEVICES")}))
# Before the Core, with which the library of their ops goes.
del compiled, model, state, tokenizer
