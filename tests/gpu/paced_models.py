"""Programs on a paced GPU plugin, each for a process of its own; the tests look at what they give."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
from gpu_models import compiled_with, encoder, split_after

import ov_autoplace
from model_checks import outputs_of
from ov_autoplace.devices.names import is_emulated

_F32 = {"INFERENCE_PRECISION_HINT": "f32"}
_X = {"x": np.ones((1, 16, 64), np.float32)}


def names() -> dict[str, Any]:
    """Devices, and what their names say."""
    core = ov.Core()
    return {
        device: [core.get_property(device, "FULL_DEVICE_NAME"), is_emulated(core, device)]
        for device in core.available_devices
    }


def profile() -> dict[str, Any]:
    """Nodes of ten inferences with their microseconds, and what the inferences took."""
    core = ov.Core()
    request = core.compile_model(encoder(2), "GPU", {**_F32, "PERF_COUNT": True}).create_infer_request()
    request.infer(_X)
    walls, processor = [], time.process_time()
    for _ in range(10):
        start = time.perf_counter()
        request.infer(_X)
        walls.append(time.perf_counter() - start)
    return {
        "nodes": [
            [node.exec_type, node.real_time.total_seconds()]
            for node in request.get_profiling_info()
            if node.status == ov.ProfilingInfo.Status.EXECUTED
        ],
        "walls": walls,
        "processor": time.process_time() - processor,
    }


def overlap(tries: int) -> list[list[float]]:
    """Seconds of a CPU inference alone, a GPU inference alone, and of both in threads, by try."""
    core = ov.Core()
    gpu = core.compile_model(encoder(4), "GPU", _F32).create_infer_request()
    gpu.infer(_X)
    alone = _seconds(lambda: gpu.infer(_X))
    cpu = core.compile_model(encoder(2, tokens=512), "CPU", _F32).create_infer_request()
    data = {"x": np.ones((1, 512, 64), np.float32)}
    cpu.infer(data)
    times = max(1, round(alone / _seconds(lambda: cpu.infer(data))))

    def work() -> None:
        for _ in range(times):
            cpu.infer(data)

    def both() -> None:
        thread = threading.Thread(target=work)
        thread.start()
        gpu.infer(_X)
        thread.join()

    return [[_seconds(work), _seconds(lambda: gpu.infer(_X)), _seconds(both)] for _ in range(tries)]


def refused_comparisons() -> dict[str, str]:
    """What looking at outputs says, by where the model runs."""
    core = ov.Core()
    model = encoder()
    ways = {
        "CPU": core.compile_model(model, "CPU", _F32),
        "GPU": core.compile_model(model, "GPU", _F32),
        "HETERO": compiled_with(core, model, split_after(model, "norm0")),
    }
    found = {}
    for name, compiled in ways.items():
        try:
            outputs_of(compiled, _X)
            found[name] = ""
        except ValueError as error:
            found[name] = str(error)
    return found


def decision(folder: str) -> dict[str, Any]:
    """What a decision, its table and a report say of costs."""
    model = encoder()
    ov.save_model(model, Path(folder) / "encoder.xml")
    placement = ov_autoplace.place(model, "GPU,CPU", "TUNE", time_budget_ms=20_000)
    assert placement.decision is not None
    assert placement.decision.table is not None
    alone = ov_autoplace.place(model, "CPU", "ZERO_SHOT")
    assert alone.decision is not None
    return {
        "reason": placement.decision.reason,
        "source": placement.decision.table.source,
        "CPU": alone.decision.reason,
    }


def target(path: str) -> dict[str, Any]:
    """Sources of a calibrated profile's numbers by device, and what a decision from the profile says."""
    core = ov.Core()
    from ov_autoplace.cost.target_json import save_target
    from ov_autoplace.measure.calibrate import calibrate

    found = calibrate(core, ("GPU", "CPU"), quick=True)
    save_target(found, path)
    estimated = ov_autoplace.place(encoder(), "GPU,CPU", "ZERO_SHOT", target=path)
    assert estimated.decision is not None
    return {
        "sources": {
            d.name: sorted({r.source for r in d.rates} | {*d.sources.values()}) for d in found.devices
        },
        "transfers": found.transfers_source,
        "saved": json.loads(Path(path).read_text(encoding="utf-8"))["transfers"]["source"],
        "reason": estimated.decision.reason,
    }


def _seconds(call: Any) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start
