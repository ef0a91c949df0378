"""Compiling a gated linear unit for one thread crashes, on processors with AMX.

Expected: it compiles, as it does for two threads or with ``INFERENCE_PRECISION_HINT`` f32. What happens:
SIGFPE, since the kernel that computes the unit divides by half the number of threads.
"""

import signal
import subprocess
import sys

import numpy as np
import openvino as ov
from openvino import opset13 as ops


def compile_it(threads: int) -> None:
    """``gelu(x A) * (x B)`` times ``C``, as in language models."""
    random = np.random.default_rng(0)

    def matmul(value: ov.Node, size: int) -> ov.Node:
        weights = random.random((size, value.get_output_shape(0)[-1]), np.float32)
        return ops.matmul(value, weights, False, True)

    x = ops.parameter([1, 4, 256], np.float32)
    unit = ops.multiply(ops.gelu(matmul(x, 768), "tanh"), matmul(x, 768))
    model = ov.Model([matmul(unit, 256)], [x])
    settings = {"INFERENCE_PRECISION_HINT": "bf16", "INFERENCE_NUM_THREADS": threads}
    ov.Core().compile_model(model, "CPU", settings)


if len(sys.argv) > 1:
    compile_it(int(sys.argv[1]))
    sys.exit()
one, two = (subprocess.run([sys.executable, __file__, n], check=False).returncode for n in "12")
how = signal.Signals(-one).name if one < 0 else f"status {one}"
print(f"OpenVINO {ov.__version__}: compiling for one thread ended with {how}, for two with status {two}")
sys.exit(0 if one < 0 and two == 0 else 1)
