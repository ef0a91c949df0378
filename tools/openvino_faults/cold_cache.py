"""Processes that compile the same models at once with one empty ``CACHE_DIR`` fail or die.

Expected: each of them reads a whole blob or none. What happens: one maps a blob into memory that another one
writes anew, and ends with SIGBUS; or ``compile_model`` raises, because a blob is gone.
"""

import signal
import subprocess
import sys
import tempfile

import numpy as np
import openvino as ov
from openvino import opset13 as ops

if len(sys.argv) > 1:
    core = ov.Core()
    for factor in range(40):
        x = value = ops.parameter([1, 512], np.float32)
        for _ in range(4):
            value = ops.matmul(value, np.full((512, 512), factor, np.float32), False, False)
        core.compile_model(ov.Model([value], [x]), "CPU", {"CACHE_DIR": sys.argv[1]})
    sys.exit()

bad: list[int] = []
for _ in range(8):
    with tempfile.TemporaryDirectory() as folder:
        run = [sys.executable, __file__, folder]
        children = [subprocess.Popen(run, stderr=subprocess.DEVNULL) for _ in range(8)]
        bad += [code for child in children if (code := child.wait())]
    if bad:
        break
how = sorted(signal.Signals(-code).name if code < 0 else f"status {code}" for code in bad)
print(f"OpenVINO {ov.__version__}: of processes with one empty cache, some ended with {how}")
sys.exit(0 if bad else 1)
