"""Dropping a Core right after a callback hangs the program.

Expected: the Core's end lets go of Python's lock while it waits for threads. What happens: it holds the lock,
and a thread that lets go of the callback waits for it.
"""

import signal
import subprocess
import sys

import openvino as ov
from openvino import opset13 as ops

if len(sys.argv) > 1:
    x = ops.parameter([8])
    model = ov.Model([ops.relu(x)], [x])
    for _ in range(1000):
        signal.alarm(5)  # ends the process where one round takes so long
        core = ov.Core()
        request = core.compile_model(model, "CPU").create_infer_request()
        request.set_callback(lambda _: None, None)
        request.start_async()
        request.wait()
        del request, core
    sys.exit()
code = subprocess.run([sys.executable, __file__, "child"], check=False).returncode
hangs = code == -signal.SIGALRM
print(f"OpenVINO {ov.__version__}: the program {'hangs' if hangs else f'ends with status {code}'}")
sys.exit(0 if hangs else 1)
