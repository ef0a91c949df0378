"""Compiling a small graph for one thread crashes, on processors with AVX-512.

Expected: it compiles, as it does for two threads or with ``SNIPPETS_MODE=DISABLE``. What happens: SIGSEGV in
the pass that merges chains of MatMuls.
"""

import signal
import subprocess
import sys

import numpy as np
import openvino as ov
from openvino import opset13 as ops


def compile_it(threads: int) -> None:
    """Chains of MatMuls that share their beginning."""
    random = np.random.default_rng(0)

    def matmul(value: ov.Node) -> ov.Node:
        return ops.matmul(value, random.random((128, 128), np.float32), False, False)

    x = ops.parameter([1, 128], np.float32)
    chain = matmul(matmul(x))
    total = ops.add(ops.relu(x), chain)
    model = ov.Model([matmul(total), ops.relu(total), chain], [x])
    settings = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": threads}
    ov.Core().compile_model(model, "CPU", settings)


if len(sys.argv) > 1:
    compile_it(int(sys.argv[1]))
    sys.exit()
one, two = (subprocess.run([sys.executable, __file__, n], check=False).returncode for n in "12")
how = signal.Signals(-one).name if one < 0 else f"status {one}"
print(f"OpenVINO {ov.__version__}: compiling for one thread ended with {how}, for two with status {two}")
sys.exit(0 if one < 0 and two == 0 else 1)
