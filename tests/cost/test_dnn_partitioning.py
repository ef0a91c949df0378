"""The public dnn-partitioning graphs, in and out."""

from __future__ import annotations

import json
import logging
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from ov_autoplace.cost.dnn_partitioning import load_dnn_partitioning
from ov_autoplace.cost.dnn_partitioning_export import save_dnn_partitioning
from ov_autoplace.cost.table import CostTable
from ov_autoplace.errors import CostTableError

DATA = Path(__file__).resolve().parent.parent / "data" / "dnn-partitioning"

# From PROVENANCE.md beside the files: nodes, edges, accelerators, GB, ms on the CPU, ms on one accelerator.
PUBLISHED = {
    "bert24_inference.json": (32, 55, 5, 1.82, 924, 92.4),
    "gnmt_inference.json": (96, 122, 6, 2.47, 1826, 182.6),
    "bert_l-3_inference.json": (235, 250, 4, 1.51, 1135, 49.4),
    "resnet50_inference.json": (604, 619, 9, 3.51, 7478, 325.1),
}


def assert_equal_tables(one: CostTable, other: CostTable) -> None:
    for field in fields(CostTable):
        left, right = getattr(one, field.name), getattr(other, field.name)
        same = np.array_equal(left, right) if isinstance(left, np.ndarray) else left == right
        assert same, field.name


@pytest.fixture
def document() -> dict:
    """Four nodes written out of order: a -> {b, c} -> d, of which b and c share a class."""
    return {
        "maxSizePerFPGA": 100.0,
        "maxFPGAs": 2,
        "maxCPUs": 1,
        "nodes": [
            {"name": "d", "id": 9, "cpuLatency": 4.0, "fpgaLatency": 0.5, "size": 4, "supportedOnFpga": 1},
            {"name": "b", "id": 7, "cpuLatency": 2.0, "fpgaLatency": 0.2, "size": 2, "supportedOnFpga": 0}
            | {"colorClass": 5},
            {"name": "c", "id": 8, "cpuLatency": 3.0, "fpgaLatency": 0.3, "size": 3, "supportedOnFpga": 1}
            | {"colorClass": 5},
            {"name": "a", "id": 1, "cpuLatency": 1.0, "fpgaLatency": 0.1, "size": 1, "supportedOnFpga": 1}
            | {"colorClass": 6},
        ],
        "edges": [
            {"sourceId": 1, "destId": 7, "cost": 0.25},
            {"sourceId": 1, "destId": 8, "cost": 0.25},
            {"sourceId": 7, "destId": 9, "cost": 1.0},
            {"sourceId": 8, "destId": 9, "cost": 2.0},
        ],
    }


@pytest.fixture
def write(tmp_path):
    def write(document: object) -> Path:
        path = tmp_path / "graph.json"
        path.write_text(json.dumps(document))
        return path

    return write


@pytest.mark.parametrize("file", PUBLISHED)
def test_totals_equal_the_published_ones(file):
    nodes, edges, accelerators, gigabytes, cpu_ms, accelerator_ms = PUBLISHED[file]
    table = load_dnn_partitioning(DATA / file)
    assert len(table) == nodes
    assert len(table.tensor_consumers) == edges
    assert table.devices == (*(f"ACC.{i}" for i in range(accelerators)), "CPU")
    assert table.memory_bytes.sum() / 1e9 == pytest.approx(gigabytes, abs=0.005)
    assert table.op_seconds[:, -1].sum() * 1e3 == pytest.approx(cpu_ms, abs=0.5)
    for acc in range(accelerators):
        assert table.op_seconds[:, acc].sum() * 1e3 == pytest.approx(accelerator_ms, abs=0.05)
    np.testing.assert_array_equal(table.memory_capacity, [629145600.0] * accelerators + [np.inf])


@pytest.mark.parametrize("file", PUBLISHED)
def test_a_published_graph_survives_export_and_import_bit_by_bit(file, tmp_path, caplog):
    table = load_dnn_partitioning(DATA / file)
    save_dnn_partitioning(table, tmp_path / "again.json")
    assert not caplog.records  # nothing is lost, so nothing is warned of
    assert_equal_tables(load_dnn_partitioning(tmp_path / "again.json"), table)


def test_nodes_are_sorted_and_costs_become_seconds(document, write):
    table = load_dnn_partitioning(write(document))
    assert table.names == ("a", "b", "c", "d")
    np.testing.assert_array_equal(table.op_seconds[:, 2], [0.001, 0.002, 0.003, 0.004])
    np.testing.assert_array_equal(table.op_seconds[:, 0], [0.0001, np.inf, 0.0003, 0.0005])
    np.testing.assert_array_equal(table.memory_bytes, [1, 2, 3, 4])
    assert table.tensor_producer.tolist() == [0, 1, 2]
    assert table.tensor_consumers.tolist() == [1, 2, 3, 3]
    assert table.source == "imported"


def test_an_edge_is_paid_once_to_the_host_and_twice_between_accelerators(document, write):
    table = load_dnn_partitioning(write(document))
    seconds = table.transfer_latency + table.transfer_seconds_per_byte * table.tensor_bytes[0]
    np.testing.assert_allclose(
        seconds, [[0, 0.0005, 0.00025], [0.0005, 0, 0.00025], [0.00025, 0.00025, 0]], rtol=1e-12
    )


def test_only_colour_classes_of_several_nodes_bind(document, write):
    assert load_dnn_partitioning(write(document)).colocation.tolist() == [-1, 0, 0, -1]
    for node in document["nodes"]:
        node.pop("colorClass", None)
    assert load_dnn_partitioning(write(document)).colocation is None


def test_accelerators_and_memory_can_be_cut_down(document, write):
    table = load_dnn_partitioning(write(document), accelerators=1, memory=False)
    assert table.devices == ("ACC.0", "CPU")
    assert table.op_seconds.shape == (4, 2)
    assert np.isinf(table.memory_capacity).all()
    with pytest.raises(CostTableError, match="has 2 accelerators; 3 of them cannot be kept"):
        load_dnn_partitioning(write(document), accelerators=3)


def test_equal_node_names_are_told_apart_by_their_ids(document, write):
    for node in document["nodes"]:
        node["name"] = "same"
    assert load_dnn_partitioning(write(document)).names == ("same#1", "same#7", "same#8", "same#9")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            lambda d: d["edges"].append({"sourceId": 9, "destId": 1, "cost": 0}),
            "4 nodes lie on or behind a cycle",
        ),
        (
            lambda d: d["edges"].append({"sourceId": 9, "destId": 77, "cost": 0}),
            "destId 77 is the id of no node",
        ),
        (lambda d: d["edges"].append({"sourceId": 1, "destId": 9, "cost": 9}), "at one cost"),
        (lambda d: d["nodes"].append(d["nodes"][0]), "id 9 stands twice"),
        (lambda d: d.update(maxFPGAs=10**9), "'maxFPGAs' must be an integer of 0 to 1024"),
    ],
)
def test_a_wrong_graph_is_one_sentence_that_names_the_file(document, write, change, sentence):
    document["nodes"][1]["supportedOnFpga"] = 1
    change(document)
    path = write(document)
    with pytest.raises(CostTableError, match=sentence) as raised:
        load_dnn_partitioning(path)
    assert str(raised.value).startswith(str(path))
    assert "\n" not in str(raised.value)


def test_other_devices_are_written_as_accelerators(document, write, tmp_path):
    table = load_dnn_partitioning(write(document), accelerators=1)
    renamed = replace(table, devices=("GPU", "CPU"))
    save_dnn_partitioning(renamed, tmp_path / "gpu.json")
    assert_equal_tables(load_dnn_partitioning(tmp_path / "gpu.json"), table)


def test_what_the_format_cannot_say_is_warned_of_by_name(document, write, tmp_path, caplog):
    table = load_dnn_partitioning(write(document), accelerators=1)
    richer = replace(
        table,
        launch_seconds=np.array([1e-5, 0.0]),
        transfer_latency=np.array([[0.0, 3e-6], [1e-6, 4e-6]]),
    )
    with caplog.at_level(logging.WARNING, "ov_autoplace"):
        save_dnn_partitioning(richer, tmp_path / "out.json")
    for loss in ("launch times", "transfers inside one device", "different transfer costs"):
        assert loss in caplog.text
    edges = json.loads((tmp_path / "out.json").read_text())["edges"]
    # 0.25 ms of nominal bytes, and the mean of 3 us and 1 us of latency.
    assert edges[0]["cost"] == pytest.approx(0.252)


def test_a_tensor_that_must_not_be_cut_becomes_a_colour_class(document, write, tmp_path):
    table = load_dnn_partitioning(write(document))
    bound = replace(table, tensor_uncuttable=np.array([False, False, True]))  # c -> d
    save_dnn_partitioning(bound, tmp_path / "out.json")
    # b and c shared a class already, so d joins both.
    again = load_dnn_partitioning(tmp_path / "out.json")
    assert again.colocation.tolist() == [-1, 0, 0, 0]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"devices": ("ACC.0", "ACC.1", "NPU")}, "exactly one CPU .* has none"),
        ({"devices": ("ACC.0", "CPU.1", "CPU")}, "exactly one CPU .* CPU.1, CPU"),
        ({"memory_capacity": np.array([100.0, 50.0, np.inf])}, "ACC.0 and ACC.1 differ in memory_capacity"),
        ({"memory_capacity": np.array([100.0, 100.0, 50.0])}, "no memory limit of the host"),
        ({"op_seconds": np.array([[1.0, 2.0, 3.0]] * 4)}, "ACC.0 and ACC.1 differ in op_seconds"),
        ({"op_seconds": np.array([[1.0, 1.0, np.inf]] * 4)}, "group 'a' cannot run on CPU"),
    ],
)
def test_devices_that_the_format_does_not_know_are_refused(document, write, tmp_path, change, sentence):
    table = replace(load_dnn_partitioning(write(document)), **change)
    with pytest.raises(CostTableError, match=sentence):
        save_dnn_partitioning(table, tmp_path / "out.json")
    assert not (tmp_path / "out.json").exists()
