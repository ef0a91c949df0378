"""Readers of files, and valid files for them to start from."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
from openvino import opset13 as ops

from ov_autoplace.cost.dnn_partitioning import load_dnn_partitioning
from ov_autoplace.cost.table import CostTable
from ov_autoplace.cost.target import Target
from ov_autoplace.explain.explanation import Explanation
from ov_autoplace.explain.trace import trace_events
from ov_autoplace.placement.annotation import OP_KEY, annotate, annotated_placement
from ov_autoplace.placement.decision import Decision
from ov_autoplace.placement.placement import Placement
from ov_autoplace.placement.simulator import simulate
from ov_autoplace.plugin.decision_cache import DecisionCache
from ov_autoplace.policy.card import CARD, WEIGHTS, load_card, read_file
from ov_autoplace.policy.config import CONFIGS
from ov_autoplace.policy.networks.checkpoint import load_network
from ov_autoplace.solvers import solve
from ov_autoplace.training.logs import read_log
from ov_autoplace.training.workload import Workload

__all__ = [
    "AFFINITY",
    "DECISION",
    "DNN_GRAPH",
    "NETWORK",
    "NOTES",
    "WORKLOAD",
    "affinity",
    "annotated_model",
    "card",
    "card_fields",
    "card_seeds",
    "checkpoint",
    "cost_table",
    "cost_table_seeds",
    "decision",
    "dnn_partitioning",
    "log",
    "log_seeds",
    "model",
    "placed_table",
    "report",
    "state",
    "state_field_seeds",
    "state_fields",
    "state_seeds",
    "target",
    "target_seeds",
    "workload",
    "workload_arrays",
    "workload_seeds",
]

AFFINITY = {"x": "CPU", "kernel": "CPU", "product": "GPU", "relu": "GPU", "answer": "CPU"}
NOTES = {"product": "GPU", "relu": "CPU"}
DECISION = {
    "schema": 2,
    "chosen": "auto",
    "decision": "the fastest",
    "disturbed": False,
    "placement": AFFINITY,
}
DNN_GRAPH = {
    "maxFPGAs": 2,
    "maxCPUs": 1,
    "maxSizePerFPGA": 100.0,
    "nodes": [
        {"id": 7, "name": "a", "cpuLatency": 2.0, "fpgaLatency": 1.0, "supportedOnFpga": 1, "size": 30.0},
        {"id": 3, "cpuLatency": 1.0, "fpgaLatency": 0.5, "size": 60.0, "colorClass": 4},
        {"id": 9, "cpuLatency": 1.0, "fpgaLatency": 0.5, "size": 1.0, "colorClass": 4, "supportedOnFpga": 0},
    ],
    "edges": [{"sourceId": 7, "destId": 3, "cost": 0.1}, {"sourceId": 7, "destId": 9, "cost": 0.1}],
}
NETWORK = CONFIGS["autoplace-base"].to_dict() | {"hidden": 4, "layers": 1, "rounds": 1, "looks": 0}
WORKLOAD: dict[str, Any] = {
    "schema": 1,
    "about": ["net", "family"],
    "num_ops": 9,
    "op_types": ["Parameter", "MatMul", "Relu"],
    "ranks": [1, 2, 0],
    "dims": [4, 2, -1],
    "flops": [[0.0, 0.0, 0.0, 0.0], [8.0, 0.0, 1.0, 0.0], [0.0, 2.0, 0.0, 0.0]],
    "weight_bytes": [0.0, 64.0, 0.0],
    "output_bytes": [16.0, 8.0, 8.0],
    "exchanged_bytes": [16.0, 24.0, 8.0],
    "busy": [False, True, True],
    "tensor_producer": [0, 1],
    "tensor_bytes": [16.0, 8.0],
    "tensor_offsets": [0, 2, 3],
    "tensor_consumers": [1, 2, 2],
    "tensor_is_constant": [False, False],
    "tensor_uncuttable": [False, True],
}


def _stored(data: bytes, folder: Path, name: str) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


@cache
def model() -> ov.Model:
    """A small model; its ops are those of :data:`AFFINITY`."""
    x = ops.parameter([2, 3], name="x")
    product = ops.matmul(
        x, ops.constant(np.eye(3, dtype=np.float32), name="kernel"), False, False, name="product"
    )
    return ov.Model([ops.result(ops.relu(product, name="relu"), name="answer")], [x], "net")


def affinity(data: bytes, folder: Path) -> None:
    """An affinity file, applied to a model and read back from it."""
    placement = Placement.load(_stored(data, folder, "net.affinity.json"))
    clone = model().clone()
    annotate(clone, placement)
    found = annotated_placement(clone)
    assert found is not None
    assert found.to_dict().items() <= placement.to_dict().items()


def annotated_model(data: bytes, folder: Path) -> None:
    """Per-op notes as an IR may carry them; only texts survive in a file, numbers may be set in memory."""
    try:
        notes = json.loads(data)
    except (ValueError, RecursionError):
        return
    clone = model().clone()
    for op in clone.get_ordered_ops():
        value = notes.get(op.get_friendly_name()) if isinstance(notes, dict) else notes
        if isinstance(value, (str, int, float)):
            try:
                op.get_rt_info()[OP_KEY] = value
            except (RuntimeError, UnicodeError, TypeError, OverflowError):  # the bindings refuse to hold it
                continue
    annotated_placement(clone)


def cost_table_seeds() -> list[bytes]:
    """A table with everything that a table can have, and a plain one."""
    plain = {
        "schema": "ov-autoplace/cost-table",
        "version": 1,
        "source": "profiled",
        "devices": [
            {"name": "GPU", "launch_seconds": 0.001, "memory_capacity": 100},
            {"name": "CPU", "launch_seconds": 0.0001, "memory_capacity": None},
        ],
        "transfer_latency": [[0, 0.001], [0.002, 0]],
        "transfer_seconds_per_byte": [[0, 1e-9], [2e-9, 0]],
        "groups": [
            {"name": f"op{i}", "op_seconds": [0.1 * i, None if i == 1 else 0.3], "memory_bytes": 10 * i}
            for i in range(4)
        ],
        "tensors": [
            {"producer": 0, "bytes": 1000, "consumers": [1, 2]},
            {"producer": 1, "bytes": 10, "consumers": [3], "constant": True},
            {"producer": 2, "bytes": 10, "consumers": [3], "uncuttable": True},
        ],
    }
    rich = json.loads(json.dumps(plain))
    for i, group in enumerate(rich["groups"]):
        more = {"op_type": "Relu", "output_shape": [1, -1], "colocation": i % 2 - 1}
        group |= more | {"members": [f"op{i}", f"op{i}/b"]}
    rich["wiring"] = {
        "node_group": [0, 1, 2, 3, 3],
        "node_kind": [1, 0, 0, 0, 3],
        "tensor_producer": [0, 1, 2, 3],
        "tensor_bytes": [1000, 10, 10, 4],
        "tensor_consumers": [[1, 2], [3], [3], [4]],
        "bonds": [[1, 3]],
    }
    return [json.dumps(table).encode() for table in (plain, rich)]


def cost_table(data: bytes, folder: Path) -> None:
    """A cost table, which is saved again and read back."""
    table = CostTable.load(_stored(data, folder, "net.table.json"))
    table.save(folder / "again.json")
    assert CostTable.load(folder / "again.json").names == table.names


def _single(table: CostTable) -> np.ndarray:
    """The first device that runs each group, else device 0."""
    return np.argmax(np.isfinite(table.op_seconds), axis=1).astype(np.int32)


def placed_table(data: bytes, folder: Path) -> None:
    """A cost table that is simulated, solved, explained and drawn as a trace."""
    table = CostTable.load(_stored(data, folder, "net.table.json"))
    if table.num_devices > 8:
        return  # solvers take longer
    schedule = simulate(table, _single(table))
    assert schedule.subgraphs >= 0
    placement = solve(table, solver="auto")
    explanation = Explanation(table, placement.assignment)
    explanation.subgraphs(), explanation.all_groups(), explanation.cuts()
    json.dumps(trace_events(explanation), allow_nan=False)


def report(data: bytes, folder: Path) -> None:
    """A cost table as a page."""
    from ov_autoplace.report import write_report
    from ov_autoplace.report.contents import placement_contents

    table = CostTable.load(_stored(data, folder, "net.table.json"))
    explanation = Explanation(table, _single(table))
    choice = Decision("auto", "the fastest", "PROFILE", (), {}, table)
    write_report(
        placement_contents(table.names[0] if table.names else "net", choice, explanation), folder / "a.html"
    )


def target_seeds() -> list[bytes]:
    """A catalogued target, shortened."""
    folder = Path(str(__import__("ov_autoplace").__file__)).parent / "targets"
    document = json.loads(min(folder.glob("*.json"), key=lambda path: path.stat().st_size).read_text())
    document["transfers"]["samples"] = [{"devices": ["CPU"], "tensor_bytes": 8, "seconds": [0.1, 0.2]}]
    document["samples"] = [
        {"device": "CPU", "op_class": "dense", "precision": "f32", "size": 8, "seconds": [0.1]}
    ]
    return [json.dumps(document).encode()]


def target(data: bytes, folder: Path) -> None:
    """A target profile, which is asked for rates and written again."""
    found = Target.load(_stored(data, folder, "machine.json"))
    work = np.array([0.0, 1.0, 1e6, 1e12])
    for device in found.devices:
        for rate in device.rates:
            speeds = device.rate(rate.op_class, rate.precision).at(work)
            assert np.isfinite(speeds).all()
    found.save(folder / "again.json")
    Target.load(folder / "again.json")


def dnn_partitioning(data: bytes, folder: Path) -> None:
    """A graph of the dnn-partitioning format."""
    path = _stored(data, folder, "graph.json")
    table = load_dnn_partitioning(path)
    if table.num_devices <= 8:
        simulate(table, _single(table))


def decision(data: bytes, folder: Path) -> None:
    """An entry of the decision cache: whatever is not one counts as none."""
    found = DecisionCache(_stored(data, folder, "autoplace-0.json"), ("CPU", "GPU")).load(AFFINITY)
    assert found is None or found.device_of.keys() == AFFINITY.keys()


def _arrays(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: np.array(value) for name, value in fields.items()}


def workload_seeds() -> list[bytes]:
    """The archive of a workload."""
    import io

    file = io.BytesIO()
    np.savez_compressed(file, **_arrays(WORKLOAD))
    return [file.getvalue()]


def workload(data: bytes, folder: Path) -> None:
    """A workload's archive."""
    Workload.load(_stored(data, folder, "net.npz"))


def workload_arrays(data: bytes, folder: Path) -> None:
    """A workload whose archive is whole and whose arrays are any."""
    try:
        fields = json.loads(data)
        arrays = {str(name).replace("/", "_"): value for name, value in _arrays(fields).items()}
        arrays = {name: value for name, value in arrays.items() if value.dtype != object}
        np.savez(folder / "net.npz", **arrays)
    except (ValueError, TypeError, AttributeError, RecursionError, OverflowError, OSError):
        return
    Workload.load(folder / "net.npz")


def log_seeds() -> list[bytes]:
    """Two records, and a torn one."""
    return [b'{"step": 1, "loss": 0.5}\n{"step": 2, "loss": null}\n{"st', b""]


def log(data: bytes, folder: Path) -> None:
    """A training log."""
    read_log(_stored(data, folder, "log.jsonl"))


def card_seeds() -> list[bytes]:
    """The shipped checkpoint's card without its long parts."""
    from ov_autoplace.policy.card import _features, shipped_checkpoint

    shipped = shipped_checkpoint()
    assert shipped is not None
    fields = json.loads((shipped / CARD).read_text())
    fields |= {"training": {"max_devices": 6}, "metrics": {}, "features": _features()}
    fields["files"] = {WEIGHTS: hashlib.sha256(b"").hexdigest()}
    return [_signed(fields)]


def _signed(fields: Any) -> bytes:
    if isinstance(fields, dict):
        fields = {key: value for key, value in fields.items() if key != "sha256"}
        text = json.dumps(fields, sort_keys=True)
        fields["sha256"] = hashlib.sha256(text.encode()).hexdigest()
    return json.dumps(fields).encode()


def card(data: bytes, folder: Path) -> None:
    """A checkpoint's card."""
    _stored(data, folder, CARD)
    found = load_card(folder)
    assert isinstance(found.name, str)
    found.num_devices, found.max_devices  # noqa: B018 - they are read


def card_fields(data: bytes, folder: Path) -> None:
    """A card whose checksum fits whatever it says, and the files that it names."""
    try:
        signed = _signed(json.loads(data))
    except (ValueError, RecursionError, UnicodeError):
        return
    _stored(signed, folder, CARD)
    _stored(b"", folder, WEIGHTS)
    found = load_card(folder)
    assert found.num_devices is None or isinstance(found.num_devices, int)
    for name in found.files:
        read_file(found, name)


def checkpoint(data: bytes, folder: Path) -> None:
    """A checkpoint whose card vouches for its files and describes any network."""
    try:
        network = json.loads(data)
    except (ValueError, RecursionError):
        return
    if not isinstance(network, dict) or any(
        isinstance(value, int) and value > 64 for value in network.values()
    ):
        return  # a large network takes the memory that it says it takes
    fields = json.loads(card_seeds()[0]) | {"network": network}
    weights = b"\x02\0\0\0\0\0\0\0{}"
    fields["files"] = {WEIGHTS: hashlib.sha256(weights).hexdigest()}
    _stored(weights, folder, WEIGHTS)
    try:
        _stored(_signed(fields), folder, CARD)
    except UnicodeError:
        return
    load_network(folder)


def state_seeds() -> list[bytes]:
    """A training state."""
    import tempfile

    import torch

    from ov_autoplace.training.state import save_state

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.safetensors"
        save_state(path, {"network/w": torch.arange(4.0)}, {"values": {"step": 3}})
        return [path.read_bytes()]


def state(data: bytes, folder: Path) -> None:
    """A training state's bytes."""
    from ov_autoplace.training.state import load_state

    load_state(_stored(data, folder, "state.safetensors"))


@cache
def _trained() -> tuple[Any, Any, Any]:
    import torch

    torch.manual_seed(0)
    network = torch.nn.Linear(2, 1)
    optimizer = torch.optim.AdamW(network.parameters(), 0.1)
    network(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    return network, optimizer, {"samples": torch.Generator(), "order": np.random.default_rng(0)}


def state_field_seeds() -> list[bytes]:
    """Tensors as lists, and the values, of a state that fits the network of :func:`state_fields`."""
    import tempfile

    from ov_autoplace.training.state import load_state, save_training

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.safetensors"
        save_training(path, *_trained(), {"step": 3})
        tensors, values = load_state(path)
    lists = {
        name: {"type": str(t.dtype).removeprefix("torch."), "values": t.tolist() if t.numel() < 9 else None}
        for name, t in tensors.items()
    }
    return [json.dumps({"tensors": lists, "values": values}).encode()]


def state_fields(data: bytes, folder: Path) -> None:
    """A state whose checksum fits, of any tensors and values, loaded into a network."""
    import torch

    from ov_autoplace.training.state import load_training, save_state

    network, optimizer, generators = _trained()
    try:
        fields = json.loads(data)
        tensors = {}
        for name, item in fields["tensors"].items():
            whole = torch.get_rng_state() if item["values"] is None else item["values"]
            tensors[name] = torch.as_tensor(whole, dtype=getattr(torch, item["type"]))
        values = fields["values"]
        save_state(folder / "state.safetensors", tensors, values)
    except Exception:  # torch and safetensors refuse to write it, each in its own way
        return
    load_training(folder / "state.safetensors", network, optimizer, generators)
    assert set(network.state_dict()) == {"weight", "bias"}
