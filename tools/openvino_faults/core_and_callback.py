"""Dropping a Core right after a callback hangs the program.

Expected: the Core's end lets go of Python's lock while it waits for threads. What happens: it holds the lock,
and the thread that ran the callback waits for the lock, to drop the request that it was the last to hold.
"""

import signal
import subprocess
import sys

import openvino as ov
from openvino import opset13 as ops

if len(sys.argv) > 1:
    x = ops.parameter([8])
    model = ov.Model([ops.relu(x)], [x])
    for _ in range(20):
        signal.alarm(5)  # ends the process where one round takes so long
        core = ov.Core()
        request = core.compile_model(model, "CPU").create_infer_request()
        done: list[int] = []
        # It takes long enough for this thread to be the next that holds Python's lock.
        request.set_callback(lambda _, done=done: done.append(sum(range(1_000_000))), None)
        request.start_async()
        del request
        while not done:
            pass
        del core
    sys.exit()
code = subprocess.run([sys.executable, __file__, "child"], check=False).returncode
hangs = code == -signal.SIGALRM
print(f"OpenVINO {ov.__version__}: the program {'hangs' if hangs else f'ends with status {code}'}")
sys.exit(0 if hangs else 1)
