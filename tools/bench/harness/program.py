"""A program with one model, as anybody writes it: it runs requests for as long as it is told.

program.py MODEL DEVICE PROPERTIES, the last of them as JSON. It prints a line when it is ready, and for
each number of seconds that it reads how many requests per second it did.
"""

import json
import sys
import time

import openvino as ov

import ov_autoplace  # noqa: F401 - makes the device name AUTOPLACE known

_WARM = 5

model, device, properties = sys.argv[1:]
request = ov.Core().compile_model(model, device, json.loads(properties)).create_infer_request()
for _ in range(_WARM):
    request.infer(share_outputs=True)
print("ready", flush=True)
for line in sys.stdin:
    start, count, taken = time.perf_counter(), 0, 0.0
    while taken < float(line):
        request.infer(share_outputs=True)
        count, taken = count + 1, time.perf_counter() - start
    print(count / taken, flush=True)
