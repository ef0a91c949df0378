"""Message passing equals plain loops, in both implementations.

DGL's is tested where DGL is installed, which has no wheels for Python 3.12 and later.
"""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from ov_autoplace.policy.networks.messages import (
    Topology,
    default_implementation,
    message_library,
    propagate,
)

pytestmark = pytest.mark.torch
IMPLEMENTATIONS = ["bag", pytest.param("dgl", marks=pytest.mark.dgl)]
REDUCTIONS = ["sum", "mean", "max"]


def random_topology(seed: int, nodes: int = 12, edges: int = 30, implementation: str = "bag") -> Topology:
    """Nodes 0 and the last two receive nothing, so that empty rows are at both ends and in between."""
    generator = torch.Generator().manual_seed(seed)
    source = torch.randint(nodes, (edges,), generator=generator)
    target = torch.randint(1, max(nodes - 2, 2), (edges,), generator=generator).sort().values
    return Topology(source, target, nodes, implementation=implementation)


def loop(topology: Topology, values: torch.Tensor, reduce: str) -> torch.Tensor:
    """What each node receives, added up one edge after the other."""
    result = torch.zeros(topology.num_nodes, *values.shape[1:], dtype=values.dtype)
    for node in range(topology.num_nodes):
        arriving = [values[e] for e in range(len(values)) if int(topology.target[e]) == node]
        if arriving:
            stacked = torch.stack(arriving)
            result[node] = {"sum": stacked.sum(0), "mean": stacked.mean(0), "max": stacked.amax(0)}[reduce]
    return result


def normal(seed: int, *shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_()


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
@pytest.mark.parametrize("reduce", REDUCTIONS)
@pytest.mark.parametrize("trailing", [(), (3,), (2, 3)])
@pytest.mark.parametrize("weighted", [False, True])
def test_node_states_are_propagated_like_a_loop_does_including_gradients(
    implementation, reduce, trailing, weighted
):
    topology = random_topology(seed=4, implementation=implementation)
    x, x_of_loop = normal(5, 12, *trailing), normal(5, 12, *trailing)
    weight, weight_of_loop = (normal(6, 30), normal(6, 30)) if weighted else (None, None)
    received = propagate(topology, x, weight, reduce)
    sent = x_of_loop[topology.source]
    if weight_of_loop is not None:
        sent = sent * weight_of_loop.reshape(-1, *[1] * len(trailing))
    expected = loop(topology, sent, reduce)
    torch.testing.assert_close(received, expected)
    factors = normal(7, 12, *trailing).detach()
    (received * factors).sum().backward()
    (expected * factors).sum().backward()
    torch.testing.assert_close(x.grad, x_of_loop.grad)
    if weight is not None:
        torch.testing.assert_close(weight.grad, weight_of_loop.grad)


@pytest.mark.dgl
@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_both_implementations_agree_in_single_precision(reduce):
    by_bag = random_topology(seed=8, nodes=200, edges=1_000)
    by_dgl = random_topology(seed=8, nodes=200, edges=1_000, implementation="dgl")
    x, weight = normal(9, 200, 16).detach().float(), normal(10, 1_000).detach().float()
    passed = [propagate(topology, x, weight, reduce) for topology in (by_bag, by_dgl)]
    torch.testing.assert_close(*passed, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
@pytest.mark.parametrize("reduce", REDUCTIONS)
@pytest.mark.parametrize("nodes", [0, 1, 4])
def test_a_graph_without_edges_receives_zeros(implementation, reduce, nodes):
    none = torch.zeros(0, dtype=torch.int64)
    topology = Topology(none, none, nodes, implementation=implementation)
    x = torch.ones(nodes, 3, requires_grad=True)
    received = propagate(topology, x, None, reduce)
    assert torch.equal(received, torch.zeros(nodes, 3))
    received.sum().backward()
    assert torch.equal(x.grad, torch.zeros(nodes, 3))
    assert torch.equal(propagate(topology, x, torch.ones(0), reduce), torch.zeros(nodes, 3))


@pytest.mark.dgl
def test_dgl_holds_the_same_edges_in_the_same_order():
    topology = random_topology(seed=14, implementation="dgl")
    source, target = topology.dgl_graph.edges(order="eid")
    assert torch.equal(source, topology.source)
    assert torch.equal(target, topology.target)
    assert topology.dgl_graph.num_nodes() == 12


@pytest.mark.dgl
def test_dgl_passes_messages_where_it_is_installed_and_the_card_says_so():
    import dgl

    assert default_implementation() == "dgl"
    assert Topology(torch.tensor([0]), torch.tensor([1]), 2).implementation == "dgl"
    assert message_library() == f"dgl {dgl.__version__}"


@pytest.mark.parametrize("installed", [False, True], ids=["absent", "of another version"])
def test_bags_pass_messages_where_dgl_is_not_installed_or_does_not_load(tmp_path, installed):
    """A package called `dgl` that fails like 2.x does with a current torch stands for the other version."""
    (tmp_path / "dgl.py").write_text("raise FileNotFoundError('Cannot find DGL C++ graphbolt library')")
    hide = f"sys.path.insert(0, {str(tmp_path)!r})" if installed else "sys.modules['dgl'] = None"
    program = f"""
import sys
{hide}
import torch
from ov_autoplace.policy.networks import messages
graph = messages.Topology(torch.tensor([0, 1]), torch.tensor([1, 1]), 2)
print(graph.implementation, messages.message_library(), messages.propagate(graph, torch.ones(2, 1)).tolist())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "bag bag [[0.0], [2.0]]", done.stderr
    assert ("DGL is installed and does not load" in done.stderr) == installed


@pytest.mark.dgl
def test_dgl_takes_as_many_threads_as_torch():
    import dgl

    before = torch.get_num_threads()
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            propagate(random_topology(seed=15, implementation="dgl"), torch.ones(12, 1))
            assert dgl.utils.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_the_reversed_topology_carries_the_same_edges_backwards(implementation):
    topology = random_topology(seed=11, implementation=implementation)
    backwards = topology.reversed
    order = topology.reversed_order
    assert torch.equal(backwards.source, topology.target[order])
    assert torch.equal(backwards.target, topology.source[order])
    assert bool((backwards.target[1:] >= backwards.target[:-1]).all())
    x, weight = normal(12, 12, 2).detach(), normal(13, 30).detach()
    expected = torch.zeros(12, 2, dtype=torch.float64)
    for e in range(30):
        expected[topology.source[e]] += weight[e] * x[topology.target[e]]
    received = propagate(backwards, x, weight[order], "sum")
    torch.testing.assert_close(received, expected)
    assert backwards.implementation == implementation
    assert backwards.reversed is topology
    assert torch.equal(order[backwards.reversed_order], torch.arange(30))


def test_edges_in_another_order_are_refused():
    with pytest.raises(ValueError, match="sorted by their target"):
        Topology(torch.tensor([0, 1]), torch.tensor([2, 1]), 3)


def test_an_implementation_that_does_not_exist_is_refused():
    none = torch.zeros(0, dtype=torch.int64)
    with pytest.raises(ValueError, match="'loops'"):
        Topology(none, none, 1, implementation="loops")
