"""Exporting a model of HETERO crashes when the Core that compiled it is gone.

Expected: a compiled model keeps what it needs, as one of a plain device does. What happens: SIGSEGV.
"""

import io
import signal
import subprocess
import sys

import numpy as np
import openvino as ov
from openvino import opset13 as ops

if len(sys.argv) > 1:
    x = ops.parameter([8], np.float32)
    compiled = ov.compile_model(ov.Model([ops.relu(x)], [x]), sys.argv[1])  # its Core is gone now
    compiled.export_model(io.BytesIO())
    sys.exit()
devices = ("HETERO:CPU", "CPU")
codes = [subprocess.run([sys.executable, __file__, device], check=False).returncode for device in devices]
how = [signal.Signals(-code).name if code < 0 else f"status {code}" for code in codes]
print(f"OpenVINO {ov.__version__}: exporting a model of {devices} ended with {how}")
sys.exit(0 if codes[0] < 0 and codes[1] == 0 else 1)
