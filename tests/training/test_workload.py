"""Workloads say of a model what its cost tables say, survive a file, and come in every shape."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

import workloads
import zoo
from ov_autoplace.cost.analytic import analytic_table
from ov_autoplace.cost.target import DeviceProfile, Rate, Target
from ov_autoplace.cost.transfers import TransferFit
from ov_autoplace.errors import TrainingError
from ov_autoplace.graph.coarsen import coarsen
from ov_autoplace.graph.computation_graph import CoarseGraph
from ov_autoplace.graph.extract import extract
from ov_autoplace.training.random_graphs import RANDOM_FAMILIES, random_workload
from ov_autoplace.training.workload import Workload, load_folder

RATES = {"matmul": 3e9, "convolution": 2e9, "depthwise": 1e8, "elementwise": 1e7, "copy": 4e6}
OVERHEAD = 1e-5


def flat_target() -> Target:
    """One device whose rates do not depend on the amount of work."""
    device = DeviceProfile(
        name="CPU",
        full_name="a flat machine",
        precision="f32",
        rates=tuple(Rate(c, "f32", np.ones(1), np.array([v]), "test") for c, v in RATES.items()),
        op_overhead_seconds=OVERHEAD,
        memory_bytes=np.inf,
        sources={"op_overhead_seconds": "test", "memory_bytes": "test"},
    )
    none = np.zeros((1, 1))
    return Target("flat", "", "", "", (device,), TransferFit(("CPU",), none, none, np.zeros(1)), "test")


def coarse_graph(name: str) -> CoarseGraph:
    return coarsen(extract(zoo.build(name)))


def equal(a: Workload, b: Workload) -> bool:
    return all(
        np.array_equal(getattr(a, field.name), getattr(b, field.name))
        if isinstance(getattr(a, field.name), np.ndarray)
        else getattr(a, field.name) == getattr(b, field.name)
        for field in fields(Workload)
    )


def edges_of(workload: Workload) -> list[tuple[int, int]]:
    producers = np.repeat(workload.tensor_producer, np.diff(workload.tensor_offsets))
    return list(zip(producers.tolist(), workload.tensor_consumers.tolist(), strict=True))


@pytest.mark.parametrize("name", ["inception_v3", "decoder", "gnmt", "two_tower"])
def test_a_workload_has_the_tensors_and_the_memory_of_the_table(name: str) -> None:
    coarse = coarse_graph(name)
    workload = Workload.of(coarse, name, name)
    table = analytic_table(coarse, flat_target(), ("CPU",))
    for field in fields(Workload):
        if field.name.startswith("tensor_"):
            np.testing.assert_array_equal(getattr(workload, field.name), getattr(table, field.name))
    np.testing.assert_array_equal(workload.weight_bytes + workload.output_bytes, table.memory_bytes)
    assert workload.op_types == table.op_types
    assert workload.output_shapes == coarse.graph.output_shapes
    assert workload.num_ops == sum(len(members) for members in coarse.members)


def test_a_workload_comes_back_from_its_file(tmp_path: Path) -> None:
    for workload in (
        Workload.of(coarse_graph("gnmt"), "a name", "a family"),
        random_workload("random_layered", 40, 3),
    ):
        workload.save(tmp_path / "one.npz")
        assert equal(Workload.load(tmp_path / "one.npz"), workload)


def test_a_folder_is_read_in_the_order_of_its_names(tmp_path: Path) -> None:
    for name in ("b", "a", "c"):
        replace(random_workload("random_tree", 9, 0), name=name).save(tmp_path / f"{name}.npz")
    assert [workload.name for workload in load_folder(tmp_path)] == ["a", "b", "c"]


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="no workloads; write some there"):
        load_folder(tmp_path)
    with pytest.raises(TrainingError, match="no workloads; write some there"):
        load_folder(tmp_path / "missing")


def test_a_file_with_a_changed_byte_is_refused_or_read_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "changed.npz"
    workload = random_workload("random_tree", 9, 0)
    workload.save(path)
    whole = path.read_bytes()
    random = np.random.default_rng(0)
    for position in random.choice(len(whole), size=200, replace=False).tolist():
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 0x55]) + whole[position + 1 :])
        try:
            read = Workload.load(path)
        except TrainingError:
            continue
        assert equal(read, workload)  # a byte of the archive that carries nothing, such as a date


def test_other_files_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "other.npz", x=np.arange(3))
    np.savez(tmp_path / "pickled.npz", schema=np.array([{}], dtype=object))
    random_workload("random_tree", 9, 0).save(tmp_path / "newer.npz")
    with np.load(tmp_path / "newer.npz") as stored:
        np.savez(tmp_path / "newer.npz", **{**stored, "schema": np.array(2)})
    for name in ("other", "pickled", "newer", "missing"):
        with pytest.raises(TrainingError, match="holds no workload"):
            Workload.load(tmp_path / f"{name}.npz")


def test_contradictory_arrays_are_refused() -> None:
    workload = random_workload("random_chain_skips", 9, 0)
    for change in (
        {"weight_bytes": workload.weight_bytes[1:]},
        {"flops": workload.flops[:, 1:]},
        {"tensor_consumers": workload.tensor_consumers[:-1]},
        {"tensor_consumers": np.zeros_like(workload.tensor_consumers)},
        {"tensor_consumers": workload.tensor_consumers + 9},
    ):
        with pytest.raises(TrainingError):
            replace(workload, **change)


@pytest.mark.parametrize("family", RANDOM_FAMILIES)
@pytest.mark.parametrize("groups", [1, 2, 5, 60, 700])
def test_a_random_graph_has_the_groups_asked_for_and_all_are_connected(family: str, groups: int) -> None:
    for seed in range(5):
        workload = random_workload(family, groups, seed)
        assert len(workload) == groups
        reached = {0}
        remaining = set(edges_of(workload))
        while touching := {edge for edge in remaining if reached & set(edge)}:
            remaining -= touching
            reached |= {end for edge in touching for end in edge}
        isolated = groups - len(reached)
        assert isolated == 0, f"{family}, {groups} groups, seed {seed}: {isolated} are apart"


@pytest.mark.parametrize("family", RANDOM_FAMILIES)
def test_a_seed_picks_a_random_graph(family: str) -> None:
    graphs = [random_workload(family, 30, seed) for seed in (0, 0, 1, 2)]
    assert equal(graphs[0], graphs[1])
    assert len({graph.flops.tobytes() for graph in graphs}) == 3


@pytest.mark.parametrize("family", RANDOM_FAMILIES)
def test_costs_of_random_graphs_lie_where_those_of_networks_do(family: str) -> None:
    networks = [Workload.of(coarse_graph(name), name, name) for name in ("inception_v3", "bert_base")]
    networks += [
        workloads.network_workload(family, 60, seed=1) for family in ("vgg", "mobilenet", "rnnlm", "decoder")
    ]
    drawn = [random_workload(family, 100, seed) for seed in range(20)]
    for field in ("tensor_bytes", "exchanged_bytes", "output_bytes"):
        known = np.concatenate([getattr(w, field) for w in networks])
        seen = np.concatenate([getattr(w, field) for w in drawn])
        assert known[known > 0].min() < np.median(seen) < known.max(), field
    work = np.concatenate([w.flops.sum(axis=1) for w in networks])
    assert work[work > 0].min() < np.median(np.concatenate([w.flops.sum(axis=1) for w in drawn])) < work.max()


def test_a_random_tree_is_read_group_by_group_by_one_other() -> None:
    for seed in range(5):
        sources, _ = zip(*edges_of(random_workload("random_tree", 85, seed)), strict=True)
        assert len(set(sources)) == len(sources) == 84


def test_a_random_fan_out_has_hubs_with_many_readers() -> None:
    for seed in range(5):
        sources = [source for source, _ in edges_of(random_workload("random_fan_out", 85, seed))]
        assert np.bincount(sources).max() >= 3


def test_a_random_chain_has_skips_over_every_group() -> None:
    for seed in range(5):
        edges = edges_of(random_workload("random_chain_skips", 85, seed))
        assert {(group, group + 1) for group in range(84)} <= set(edges)
        assert len(edges) > 84


def test_a_series_parallel_graph_reduces_to_one_edge() -> None:
    for seed in range(10):
        edges = sorted(set(edges_of(random_workload("random_series_parallel", 85, seed))))
        reduced = True
        while reduced:
            reduced = False
            for group in range(85):
                into = [edge for edge in edges if edge[1] == group]
                out = [edge for edge in edges if edge[0] == group]
                if len(into) == len(out) == 1:
                    edges = sorted({*edges, (into[0][0], out[0][1])} - {*into, *out})
                    reduced = True
        assert len(edges) == 1


def test_the_same_arguments_write_the_same_files(tmp_path: Path) -> None:
    counts = len(zoo.TRAINING_FAMILIES), len(RANDOM_FAMILIES)
    for folder in ("first", "second"):
        workloads.write_workloads(tmp_path / folder, "training", *counts, seed=2, smallest=5, largest=40)
    first, second = (sorted((tmp_path / folder).iterdir()) for folder in ("first", "second"))
    assert [path.name for path in first] == [path.name for path in second]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    read = load_folder(tmp_path / "first")
    assert [workload.family for workload in read] == [*zoo.TRAINING_FAMILIES, *RANDOM_FAMILIES]


def test_held_out_files_hold_held_out_families(tmp_path: Path) -> None:
    count = len(zoo.HELD_OUT_FAMILIES)
    workloads.write_workloads(tmp_path, "held-out", count, 0, seed=2, smallest=5, largest=10)
    assert {workload.family for workload in load_folder(tmp_path)} == set(zoo.HELD_OUT_FAMILIES)


def test_networks_have_about_the_groups_asked_for() -> None:
    for family in zoo.FAMILIES:
        workload = workloads.network_workload(family, 100, seed=4)
        assert 100 / 1.5 < len(workload) < 100 * 1.5
        # Groups are what devices fuse: a few ops each, and not the whole network in one.
        assert 2 < workload.num_ops / len(workload) < 20
