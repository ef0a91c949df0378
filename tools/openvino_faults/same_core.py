"""Models of one thread are bound to the same core in every process.

Expected: two processes use two of the idle cores. What happens: the threads of both are bound to the first
one, so each gets half of it.
"""

import os
import subprocess
import sys

import numpy as np
import openvino as ov
from openvino import opset13 as ops

if len(sys.argv) > 1:
    weights = np.zeros((2048, 2048), np.float32)
    x = ops.parameter([2048, 2048], np.float32)
    model = ov.Model([ops.matmul(x, weights, False, False)], [x])
    request = ov.Core().compile_model(model, "CPU", {"INFERENCE_NUM_THREADS": 1}).create_infer_request()
    request.start_async([weights])
    bound: set[int] = set()
    while not request.wait_for(1):  # milliseconds
        masks = [os.sched_getaffinity(int(thread)) for thread in os.listdir("/proc/self/task")]
        bound.update(core for mask in masks if len(mask) == 1 for core in mask)
    print(*bound)
    sys.exit()

run = [sys.executable, __file__, "child"]
children = [subprocess.Popen(run, stdout=subprocess.PIPE, text=True) for _ in range(2)]
cores = [child.communicate()[0].split() for child in children]
print(f"OpenVINO {ov.__version__}: two models on one thread each run on the cores {cores}")
sys.exit(0 if cores[0] and cores[0] == cores[1] and len(os.sched_getaffinity(0)) > 1 else 1)
