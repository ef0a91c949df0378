"""Readers of files of models, placements and costs, and valid files for them to start from."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
from openvino import opset13 as ops

from ov_autoplace.application.answer import ApplicationPlan
from ov_autoplace.application.export import genai_code, model_server_config
from ov_autoplace.application.workload import Application
from ov_autoplace.cost.dnn_partitioning import load_dnn_partitioning
from ov_autoplace.cost.table import CostTable
from ov_autoplace.cost.table_json import load_table, save_table
from ov_autoplace.cost.target_json import load_target, save_target
from ov_autoplace.devices.widths import Width
from ov_autoplace.errors import PlacementError
from ov_autoplace.explain.answer import Answer
from ov_autoplace.explain.hetero import HeteroExplanation
from ov_autoplace.explain.trace import trace_events
from ov_autoplace.measure.transfer_store import StoredTransfers
from ov_autoplace.plan.annotation import OP_KEY, annotate, annotated_placement
from ov_autoplace.plan.decision import Candidate, Decision
from ov_autoplace.plan.findings import Finding, Kind
from ov_autoplace.plan.hetero_rules import StoredCounts
from ov_autoplace.plan.joint import EVERY_KIND, JointPlan, Part, read_joint_plan
from ov_autoplace.plan.placement import Placement
from ov_autoplace.plan.plan import LanePlan, PoolPlan, SplitPlan, WholePlan, read_plan
from ov_autoplace.plan.scheduled import plan_of, scheduled_model
from ov_autoplace.plan.simulator import simulate
from ov_autoplace.plugin.decision_cache import DecisionCache
from ov_autoplace.solvers import solve

AFFINITY_FILE = "net.affinity.json"
AFFINITY = {"x": "CPU", "kernel": "CPU", "product": "GPU", "relu": "GPU", "answer": "CPU"}
NOTES = {"product": "GPU", "relu": "CPU"}
DECISION = {
    "schema": "ov_autoplace.decision",
    "version": 5,
    "decision": "the fastest",
    "disturbed": False,
    "plan": SplitPlan.of(AFFINITY).to_json(),
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
TRANSFERS = {
    "schema": "ov-autoplace/transfers",
    "version": 1,
    "conditions": ["OpenVINO 2026", "two processors"],
    "devices": ["GPU", "CPU"],
    "settings": {"GPU": {}, "CPU": {"NUM_STREAMS": "1"}},
    "samples": [{"devices": ["GPU", "CPU", "GPU", "CPU"], "tensor_bytes": 4096, "seconds": [1e-3, 2e-3]}],
}

COUNTS = {
    "schema": "ov-autoplace/hetero-counts",
    "version": 1,
    "openvino": "2026.9.0-1-0123456789a",
    "canaries": ["xA 0B 1A", "xB 0A"],
    "counts": [3, 0],
}

LANES = {
    "schema": "ov_autoplace.plan",
    "version": 1,
    "kind": "lanes",
    "lanes": [{"device": "CPU", "properties": {"NUM_STREAMS": "0"}}, {"device": "GPU.1", "properties": {}}],
    "submodels": [
        {"lane": 0, "rank": 3, "ops": ["product"]},
        {"lane": 1, "rank": 1, "ops": ["relu"]},
    ],
    "forms": {"product": "bf16"},
}
WHOLE = WholePlan("CPU", Width(1, in_caller=True))
HINTED = WholePlan("AUTO:CPU,GPU", properties={"PERFORMANCE_HINT": "CUMULATIVE_THROUGHPUT"})
APPLICATION = {
    "version": 1,
    "models": {
        "det": {"path": "det.xml", "devices": ["CPU"], "shapes": {"x": [1, 3]}, "properties": {"A": 1}},
        "cls": {"path": "cls.xml"},
        "extra": {"path": "sub/extra.xml"},
    },
    "load": [
        {"start": "det", "rate": 30, "arrivals": "poisson", "deadline_ms": 33, "percentile": 95},
        {"start": "extra", "in_flight": 2, "priority": 3},
    ],
    "chains": [{"from": "det", "to": "cls", "times": 2.5}],
}
MIXTURE = PoolPlan("mixture", HINTED, (WHOLE, SplitPlan.of(AFFINITY, {"A": "b"})), 3, (0, 1, 1))
POOL = MIXTURE.to_json()
PARTS = (
    Part("det", WHOLE, 2, "00ff", "det.xml", {"PERF_COUNT": "YES"}, (0, 1)),
    Part("cls", MIXTURE),
)
JOINT = JointPlan("det: 1 thread, cls: mixture", PARTS, False, ("OpenVINO 2026",), (0, 1)).to_json()


def stored(data: bytes, folder: Path, name: str) -> Path:
    """The file that a reader is given."""
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
    placement = Placement.load(stored(data, folder, AFFINITY_FILE))
    clone = model().clone()
    annotate(clone, placement)
    found = annotated_placement(clone)
    assert found is not None
    assert found.to_dict().items() <= placement.to_dict().items()


def annotated_model(notes: Any, folder: Path) -> None:
    """Per-op notes as an IR may carry them; only texts survive in a file, numbers may be set in memory."""
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


def cost_table(path: Path) -> None:
    """A cost table, which is saved again and read back."""
    table = load_table(path)
    save_table(table, path.with_name("again.json"))
    assert load_table(path.with_name("again.json")).names == table.names


def _single(table: CostTable) -> np.ndarray:
    """The first device that runs each group, else device 0."""
    return np.argmax(np.isfinite(table.op_seconds), axis=1).astype(np.int32)


def placed_table(data: bytes, folder: Path) -> bool:
    """A cost table that is simulated, solved, explained and drawn as a trace."""
    table = load_table(stored(data, folder, "net.table.json"))
    if table.num_devices > 8:
        return False  # solvers take longer
    schedule = simulate(table, _single(table))
    assert schedule.subgraphs >= 0
    placement = solve(table, solver="portfolio")
    explanation = HeteroExplanation(table, placement.assignment)
    explanation.predicted, explanation.all_groups(), explanation.cuts()
    json.dumps(trace_events(explanation), allow_nan=False)
    return True


def report(data: bytes, folder: Path) -> None:
    """A cost table as a page."""
    from ov_autoplace.report import write_report
    from ov_autoplace.report.contents import placement_contents

    table = load_table(stored(data, folder, "net.table.json"))
    explanation = HeteroExplanation(table, _single(table))
    candidates = (Candidate("portfolio", WholePlan("CPU")),)
    choice = Decision(
        "portfolio", (Finding.of(Kind.PREDICTED, "portfolio"),), "PROFILE", candidates, {}, table
    )
    title = table.names[0] if table.names else "net"
    write_report(placement_contents(Answer(title, choice, explanation)), folder / "a.html")


def printed_answer_seeds() -> list[bytes]:
    """What ``annotate``, ``explain`` and ``bench`` print with ``--json``, as far as ``compare`` reads it."""
    printed = {"model": "net.xml", "devices": ["CPU"], "decision": "one device"}
    decided = printed | {"chosen": "CPU", "mode": "PROFILE"}
    steady = {"steady": {"median_ms": 1.0, "ci95_ms": [0.9, 1.1], "samples": 9}}
    one = {"name": "CPU", "requests": 0, "predicted_ms": 1.0, "measured": steady}
    other = {"name": "AUTOPLACE", "requests": 0, "predicted_ms": None, "measured": {}}
    many = {"name": "GPU", "requests": 4, "predicted_ms": None, "measured": {"queued": steady["steady"]}}
    annotated = decided | {"candidates": [one, other]}
    ops = [{"name": "a", "device": "CPU"}, {"name": "b", "device": "CPU#0"}]
    explained = decided | {"cost_source": "profiled", "candidates": [one], "ops": ops}
    benched = printed | {"rows": [one, other, many]}
    return [json.dumps(values).encode() for values in (annotated, explained, benched)]


def printed_answer(path: Path) -> None:
    """What a command printed, compared with itself."""
    from ov_autoplace.cli.compare import moved_ops, read_answer

    found = read_answer(path)
    assert not moved_ops(found, found)


def target_seeds() -> list[bytes]:
    """A catalogued target, shortened."""
    folder = Path(str(__import__("ov_autoplace").__file__)).parent / "cost" / "catalogue"
    document = json.loads(min(folder.glob("*.json"), key=lambda path: path.stat().st_size).read_text())
    document["transfers"]["samples"] = [{"devices": ["CPU"], "tensor_bytes": 8, "seconds": [0.1, 0.2]}]
    document["samples"] = [
        {"device": "CPU", "op_class": "dense", "precision": "f32", "size": 8, "ops": 1, "seconds": [0.1]}
    ]
    return [json.dumps(document).encode()]


def target(path: Path) -> None:
    """A target profile, which is asked for rates and written again."""
    found = load_target(path)
    work = np.array([0.0, 1.0, 1e6, 1e12])
    for device in found.devices:
        for rate in device.rates:
            speeds = device.rate(rate.op_class, rate.precision).at(work)
            assert np.isfinite(speeds).all()
    save_target(found, path.with_name("again.json"))
    load_target(path.with_name("again.json"))


def counts(path: Path) -> None:
    """What HETERO made of small models, written again and read back."""
    found = StoredCounts.load(path)
    found.save(path.with_name("again.json"))
    assert StoredCounts.load(path.with_name("again.json")) == found
    assert str(found)


def transfers(path: Path) -> None:
    """An entry of the store of measured transfers, written again and read back."""
    found = StoredTransfers.load(path)
    replace(found, path=path.with_name("again.json")).save()
    assert StoredTransfers.load(path.with_name("again.json")).conditions == found.conditions


def dnn_partitioning(path: Path) -> None:
    """A graph of the dnn-partitioning format."""
    table = load_dnn_partitioning(path)
    if table.num_devices <= 8:
        simulate(table, _single(table))


def decision(path: Path) -> None:
    """An entry of the decision cache: whatever is not one counts as none."""
    found = DecisionCache(path, ("CPU", "GPU")).load(AFFINITY)
    assert found is None or set(found.plan.devices) <= {"CPU", "GPU"}


def application(path: Path) -> None:
    """An application, of which it is asked when requests come and what they reach."""
    found = Application.load_file(path)
    for demand in found.load:
        assert found.reached(demand.start)[demand.start] == 1
        if demand.is_open:
            begins = demand.begins(1e4 / demand.rate / 1e3, 1.0, 0)
            assert len(begins)
            assert (np.diff(begins) >= 0).all()
            assert begins[0] >= 0


def joint_plan(path: Path) -> None:
    """The plan of several models, whose parts are found, which is written and read again, and exported."""
    found = read_joint_plan(path)
    assert read_plan(json.loads(json.dumps(found.to_json())), kinds=EVERY_KIND) == found
    found.check_machine(found.machine)
    for part in found.parts:
        assert found.part(part.name) is part
        with suppress(PlacementError):  # the same model twice
            assert found.part_of(part.digest).digest == part.digest
        with suppress(PlacementError):  # lanes, or no file
            names = dict.fromkeys(("language_model", "draft_model"), part.name)
            compile(genai_code(ApplicationPlan(found), "llm", names), path, "exec")
    with suppress(PlacementError):
        json.dumps(model_server_config(ApplicationPlan(found)))


def plan(value: Any, folder: Path) -> None:
    """A plan, written and read back; one for lanes is applied to a model, and read back from that."""
    found = read_plan(value)
    assert read_plan(json.loads(json.dumps(found.to_json()))) == found
    if isinstance(found, LanePlan):
        found = plan_of(scheduled_model(model(), found))
        assert found is not None
        assert set(found.submodel_of) == {"product", "relu"}
