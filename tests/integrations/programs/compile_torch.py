"""A network compiled with torch.compile; compile_torch.py DEVICE PROPERTIES.

Where OpenVINO's backend fails, it lets torch compile the network and says so in its log alone.
"""

import io
import json
import logging
import sys

import openvino.torch  # noqa: F401 - the backend
import torch
from openvino.frontend.pytorch import torchdynamo

import ov_autoplace  # noqa: F401 - makes the device name AUTOPLACE known

device, properties = sys.argv[1:]
said = io.StringIO()
for module in (torchdynamo.backend, torchdynamo.compile):
    module.logger.setLevel(logging.DEBUG)
    module.logger.addHandler(logging.StreamHandler(said))
torch.manual_seed(0)
network = torch.nn.Sequential(
    torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(8 * 14 * 14, 5)
).eval()
# Without aot_autograd, the backend of OpenVINO 2026.4.1 cannot trace a convolution with torch 2.13.
options = {"device": device, "config": json.loads(properties), "aot_autograd": True}
compiled = torch.compile(network, backend="openvino", options=options)
image = torch.randn(2, 3, 16, 16)
with torch.no_grad():
    answer, expected = compiled(image), network(image)
print(json.dumps({"answer": answer.tolist(), "expected": expected.tolist(), "said": said.getvalue()}))
