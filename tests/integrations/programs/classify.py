"""Classifies two sentences with optimum-intel; classify.py FOLDER DEVICE PROPERTIES."""

import json
import sys

from optimum.intel import OVModelForSequenceClassification
from transformers import AutoTokenizer

import ov_autoplace  # noqa: F401 - makes the device name AUTOPLACE known

folder, device, properties = sys.argv[1:]
model = OVModelForSequenceClassification.from_pretrained(
    folder, device=device, ov_config=json.loads(properties)
)
batch = AutoTokenizer.from_pretrained(folder)(
    ["the cat sat on", "a red dog"], padding=True, return_tensors="pt"
)
logits = model(**batch).logits
devices = model.request.get_property("EXECUTION_DEVICES")
print(json.dumps({"answer": logits.tolist(), "devices": devices}))
