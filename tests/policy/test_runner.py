"""Running a checkpoint: what it scores, how it draws; all without torch."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import weakref
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import openvino as ov
import pytest

from ov_autoplace.errors import CheckpointError
from ov_autoplace.policy import card
from ov_autoplace.policy import runner as module
from ov_autoplace.policy.features import PolicyGraph, policy_graph
from ov_autoplace.policy.inference import _tensor
from ov_autoplace.policy.readout import draw
from ov_autoplace.policy.runner import PolicyRunner, find_policy
from ov_autoplace.problem.problem import Problem
from policy_checkpoints import handmade
from random_tables import make_table, random_table


def graph_of(seed: int, groups: int, devices: int) -> PolicyGraph:
    """A random graph; units that may not run somewhere are among them."""
    table = random_table(seed, groups, devices, constrained=False)
    seconds = table.op_seconds.copy()
    seconds[np.random.default_rng(seed).random(groups) < 0.2, -1] = np.inf
    return policy_graph(Problem.of(replace(table, op_seconds=seconds)))


@pytest.mark.parametrize(("groups", "devices"), [(1, 2), (9, 2), (40, 3), (300, 5)])
def test_scores_are_those_of_the_network_and_forbidden_devices_have_none(
    tmp_path: Path, groups: int, devices: int
) -> None:
    graph = graph_of(groups, groups, devices)
    scores = PolicyRunner(handmade(tmp_path / "net", 2.0)).scores(graph)
    assert scores.dtype == np.float32
    assert scores.shape == (len(graph), devices)
    np.testing.assert_array_equal(scores[graph.allowed], 2 * graph.node_cost[graph.allowed])
    assert np.isneginf(scores[~graph.allowed]).all()


def test_draws_follow_the_softmax_of_the_scores() -> None:
    graph = policy_graph(Problem.of(make_table([[1.0, 1.0, 1.0], [1.0, np.inf, 1.0]])))
    scores = np.array([[0.0, 1.0, -1.0], [0.5, 9.0, 0.0]], dtype=np.float32)
    for temperature in (1.0, 2.0):
        drawn = draw(scores, graph, 20_000, seed=3, temperature=temperature)
        weight = np.exp(scores / temperature) * graph.allowed
        expected = weight / weight.sum(axis=1, keepdims=True)
        found = np.stack([(drawn == d).mean(axis=0) for d in range(3)], axis=1)
        # Five standard deviations of a mean of 20,000 draws.
        assert np.abs(found - expected).max() < 5 * 0.5 / np.sqrt(20_000)
        assert (found[~graph.allowed] == 0).all()


def test_draws_depend_on_the_seed_alone_and_become_greedy_when_cold(tmp_path: Path) -> None:
    runner = PolicyRunner(handmade(tmp_path / "net"))
    graph = graph_of(1, 60, 2)
    first = runner.sample(graph, 5, seed=7)
    assert first.shape == (5, len(graph))
    assert first.dtype == np.int32
    np.testing.assert_array_equal(first, runner.sample(graph, 5, seed=7))
    assert (first != runner.sample(graph, 5, seed=8)).any()
    assert (first[0] != first[1]).any()
    cold = runner.sample(graph, 3, seed=7, temperature=1e-6)
    assert (cold == runner.scores(graph).argmax(axis=1)).all()


def test_a_network_is_compiled_once_per_process_and_serves_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = []
    original = module.compile_network
    monkeypatch.setattr(module, "compile_network", lambda *a: compiled.append(1) or original(*a))
    folder = handmade(tmp_path / "net", 3.25)
    graphs = [graph_of(seed, 20 + seed, 2) for seed in range(8)]
    expected = [PolicyRunner(folder).scores(graph) for graph in graphs]
    assert len(compiled) == 1
    right: list[int] = []

    def work(i: int) -> None:
        for _ in range(20):
            np.testing.assert_array_equal(PolicyRunner(folder).scores(graphs[i]), expected[i])
            right.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Counter(right) == dict.fromkeys(range(8), 20), "of a thread that failed, fewer"
    assert len(compiled) == 1
    handmade(folder, 4.5)  # another network in the same place
    assert (PolicyRunner(folder).scores(graphs[0]) != expected[0])[graphs[0].allowed].any()
    assert len(compiled) == 2


def test_a_network_that_placed_a_large_graph_is_not_kept_and_answers_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = PolicyRunner(handmade(tmp_path / "net", 6.5))
    large, small = graph_of(2, 60, 2), graph_of(1, 10, 2)
    expected = runner.scores(large)
    runner.scores(small)
    assert runner.is_compiled, "after small graphs it is kept"
    monkeypatch.setattr(module, "_SMALL", 30)
    for _ in range(3):
        np.testing.assert_array_equal(runner.scores(large), expected)
        assert not runner.is_compiled
        runner.scores(small)
        assert runner.is_compiled


def test_the_shipped_policy_places_large_graphs_one_after_another() -> None:
    """In one process, at sizes that change: each inference takes other memory."""
    graphs = [
        graph_of(seed, units, devices) for seed, units, devices in ((1, 2_500, 2), (2, 90, 3), (3, 3_100, 2))
    ]
    answers = [[PolicyRunner().scores(graph) for graph in graphs] for _ in range(3)]
    for again in answers[1:]:
        for one, other in zip(answers[0], again, strict=True):
            np.testing.assert_array_equal(one, other)


def test_the_callers_core_is_left_alone(tmp_path: Path) -> None:
    core = ov.Core()
    core.set_property("CPU", {"INFERENCE_NUM_THREADS": 1})
    PolicyRunner(handmade(tmp_path / "net", 5.5)).scores(graph_of(0, 10, 2))
    assert core.get_property("CPU", "INFERENCE_NUM_THREADS") == 1
    assert core.get_property("CPU", "INFERENCE_PRECISION_HINT") == ov.Core().get_property(
        "CPU", "INFERENCE_PRECISION_HINT"
    )


def test_a_number_of_devices_that_the_policy_does_not_know_is_refused(tmp_path: Path) -> None:
    most = PolicyRunner(handmade(tmp_path / "most", training={"max_devices": 2}))
    exactly = PolicyRunner(handmade(tmp_path / "exactly", num_devices=3))
    most.scores(graph_of(0, 5, 2))
    exactly.scores(graph_of(0, 5, 3))
    with pytest.raises(CheckpointError, match="trained for up to 2 devices and cannot place on 3"):
        most.scores(graph_of(0, 5, 3))
    with pytest.raises(CheckpointError, match="trained for exactly 3 devices and cannot place on 2"):
        exactly.scores(graph_of(0, 5, 2))


def test_a_checkpoint_without_ir_cannot_place(tmp_path: Path) -> None:
    from ov_autoplace.policy.card import write_checkpoint

    write_checkpoint(tmp_path / "net", {"policy.safetensors": b""}, {"name": "gdp"}, {}, {})
    with pytest.raises(CheckpointError, match="'gdp' runs with torch only; use 'base'"):
        PolicyRunner(tmp_path / "net")


@pytest.mark.parametrize("graph", [b"", b"<net", b"<net name='x' version='11'></net>"])
def test_what_is_no_network_is_refused_in_one_sentence(tmp_path: Path, graph: bytes) -> None:
    from ov_autoplace.policy.card import write_checkpoint

    files = {"policy.safetensors": b"", "policy.xml": graph, "policy.bin": b""}
    write_checkpoint(tmp_path / "net", files, {"name": "n"}, {}, {})
    with pytest.raises(CheckpointError, match=r"cannot be compiled|is not a policy") as raised:
        PolicyRunner(tmp_path / "net").scores(graph_of(0, 5, 2))
    assert "\n" not in str(raised.value)


def test_a_request_without_a_choice_takes_the_shipped_policy_where_it_applies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:

    # A network of its own: the files of one that this process has compiled are not read again.
    shipped = handmade(tmp_path / "shipped", 6.5, training={"max_devices": 2})
    for place in (card, module):
        monkeypatch.setattr(place, "shipped_checkpoint", lambda: shipped)
    assert find_policy(None, 2).card.folder == shipped
    assert find_policy("none", 2) is None
    assert find_policy(None, 1) is None
    caplog.clear()
    assert find_policy(None, 3) is None  # more than it knows
    with pytest.raises(CheckpointError, match="up to 2 devices"):
        find_policy("base", 3)
    assert not caplog.records  # only of level DEBUG
    (shipped / "policy.bin").write_bytes(b"")
    assert find_policy(None, 2) is None
    assert "policy.bin is damaged" in caplog.text
    with pytest.raises(CheckpointError, match="damaged"):
        find_policy("base", 2)
    for place in (card, module):
        monkeypatch.setattr(place, "shipped_checkpoint", lambda: None)
    assert find_policy(None, 2) is None
    with pytest.raises(CheckpointError, match="has no policy checkpoint"):
        find_policy("base", 2)


def test_running_a_policy_needs_neither_torch_nor_dgl_nor_safetensors(tmp_path: Path) -> None:
    folder = handmade(tmp_path / "net")
    program = (
        "import sys\n"
        "for name in ('torch', 'dgl', 'safetensors'): sys.modules[name] = None  # importing fails now\n"
        f"sys.path.insert(0, {str(Path(__file__).parents[1])!r})\n"
        "from random_tables import random_table\n"
        "from ov_autoplace import solve\n"
        f"print(solve(random_table(0, 9, 2), 'policy', policy={str(folder)!r}).solver)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "policy"


@pytest.mark.parametrize("writeable", [True, False])
def test_a_tensor_keeps_the_array_alive_whose_memory_it_shares(writeable):
    array = np.arange(8, dtype=np.float32)
    array.flags.writeable = writeable
    alive = weakref.ref(array)
    tensor = _tensor(array, ov.Type.f32)
    del array
    gc.collect()
    assert (alive() is not None) == writeable  # of the other there is a copy
    assert tensor.data.tolist() == list(range(8))
