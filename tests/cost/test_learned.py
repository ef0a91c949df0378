"""The network of costs as it is used: what it may claim, and where the roofline speaks instead."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

from collected import NETWORKS, networks, profile, target
from ov_autoplace._base.arrays import FloatArray
from ov_autoplace.cost.analytic import Roofline
from ov_autoplace.cost.estimate import class_factors, estimated_table, estimates, fitted_factors
from ov_autoplace.cost.features import DEVICE_FEATURES, OP_FEATURES, OpInputs, descriptor
from ov_autoplace.cost.learned import CostNetwork, kernels_of
from ov_autoplace.cost.op_graph import OpGraph
from ov_autoplace.cost.table import ANALYTIC, LEARNED
from ov_autoplace.cost.target import DeviceProfile
from ov_autoplace.errors import CheckpointError
from ov_autoplace.graph.coarsen import coarsen
from ov_autoplace.graph.extract import extract
from random_models import random_model

OPS = NETWORKS[0].ops
TYPES = tuple(sorted(set(OPS.op_types)))


def random_network(hidden: int = 8, layers: int = 2, seed: int = 0, members: int = 2) -> CostNetwork:
    """Random weights."""
    random = np.random.default_rng(seed)
    sizes = {
        "embedding": (len(TYPES) + 1, hidden),
        "values": (len(OP_FEATURES) + len(DEVICE_FEATURES), hidden),
        "head.0": (hidden, hidden),
        "head.0.bias": (hidden,),
        "head.1": (hidden, 3),
        "head.1.bias": (3,),
        "kind": (3, hidden),
        "head.kind": (3, hidden),
    }
    for layer in range(layers):
        sizes |= {f"{layer}.{part}": (hidden, hidden) for part in ("self", "in", "out")}
        sizes[f"{layer}.bias"] = (hidden,)
    weights = {
        name: 0.3 * random.standard_normal((members, *size), dtype=np.float32) for name, size in sizes.items()
    }
    known = np.stack([descriptor(profile(threads)) for threads in (1, 2)])
    return CostNetwork(
        weights, TYPES, kernels_of(OPS), known, np.array([1, 2], np.int32), ("", ""), {"made": "by a test"}
    )


def unlike(device: DeviceProfile, times: int = 40) -> DeviceProfile:
    """The same at so many times the speed, but for the overhead."""
    return replace(device, rates=tuple(replace(r, per_second=times * r.per_second) for r in device.rates))


@pytest.fixture
def known(monkeypatch):
    """A network of random weights is the one that the package ships."""
    network = random_network()
    monkeypatch.setattr("ov_autoplace.cost.estimate.shipped_network", lambda: network)
    return network


def test_messages_are_means_of_producers_and_consumers():
    network = random_network(layers=1)
    inputs = OpInputs.of(OPS, profile(2))
    for member, found in enumerate(zip(*network.forward(inputs, 2), strict=True)):
        w = {name: value[member] for name, value in network.weights.items()}
        h = w["embedding"][network.rows(inputs.op_types)] + inputs.values @ w["values"]
        h = np.maximum(h + w["kind"][2], 0.0)
        received = np.zeros_like(h)
        for n in range(len(OPS)):
            for row, part in ((1, "in"), (0, "out")):
                others = OPS.edges[OPS.edges[:, row] == n][:, 1 - row]
                if len(others):
                    received[n] += (h[others] @ w[f"0.{part}"]).mean(axis=0)
        h = h + np.maximum(h @ w["0.self"] + received + w["0.bias"], 0.0)
        h = np.maximum(h @ w["head.0"] + w["head.0.bias"] + w["head.kind"][2], 0.0)
        out = h @ w["head.1"] + w["head.1.bias"]
        gate = np.log(1 / (1 + np.exp(-out[:, 1])))
        for expected, own in zip((np.clip(out[:, 0], -6, 6), gate, out[:, 2]), found, strict=True):
            np.testing.assert_allclose(own, expected, rtol=1e-4, atol=1e-5)


def test_members_answer_together_by_the_means_of_their_logarithms():
    network = random_network(members=3)
    alone = [
        replace(network, weights={name: value[[member]] for name, value in network.weights.items()})
        for member in range(3)
    ]
    found = [one.predict(OPS, profile(2)).seconds for one in alone]
    together = network.predict(OPS, profile(2)).seconds
    np.testing.assert_allclose(together, np.exp(np.log(found).mean(axis=0)), rtol=1e-6)
    assert not np.allclose(found[0], found[1])


def test_how_many_elements_move_together_is_told_by_shapes():
    x, row = ops.parameter([2, 3, 8], np.float32, name="x"), ops.parameter([2, 3, 1], np.float32, name="row")
    made = {
        "inner": ops.concat([ops.relu(x), x], 2),
        "outer": ops.concat([ops.tanh(x), x], 0),
        "middle": ops.concat([ops.abs(x), x], 1),
        "broadcast": ops.add(ops.sigmoid(x), row),
        "whole": ops.exp(x),
        "cut": ops.slice(x, np.int64([0]), np.int64([5]), np.int64([1]), np.int64([2])),
    }
    for name, op in made.items():
        op.set_friendly_name(name)
    graph = extract(ov.Model(list(made.values()), [x, row], "shapes"))
    found, kept = OpGraph.of(graph)
    together = {graph.names[i]: length for i, length in zip(kept, found.run_length, strict=True)}
    expected = {"inner": 8, "outer": 48, "middle": 24, "broadcast": 1, "whole": 48, "cut": 5}
    assert {name: together[name] for name in expected} == expected


@pytest.mark.parametrize("speed", [0.5, 1.7])
def test_a_machine_that_is_faster_at_everything_takes_as_much_less(speed):
    network = random_network()
    usual, other = (network.predict(OPS, profile(1, s)).seconds for s in (1.0, speed))
    np.testing.assert_allclose(other * speed, usual, rtol=1e-3)


def test_a_disturbed_device_shows_other_times_and_the_same_ops():
    inputs = OpInputs.of(OPS, profile(2))
    other = inputs.disturbed(np.random.default_rng(0), noise=0.5, dropout=0.5)
    names = [*OP_FEATURES, *DEVICE_FEATURES]
    changed = {names[i] for i in np.flatnonzero((other.values != inputs.values).any(axis=0))}
    assert changed == set(DEVICE_FEATURES) - {"log_threads", "synchronisation", "is_bf16", "is_f16"}
    assert (np.ptp(other.values - inputs.values, axis=0) < 1e-5).all()  # of all ops alike
    assert 0 < len(other.edges) < len(inputs.edges)
    same = inputs.disturbed(np.random.default_rng(0), noise=0.0, dropout=0.0)
    np.testing.assert_array_equal(same.values, inputs.values)
    np.testing.assert_array_equal(same.edges, inputs.edges)


def test_threads_share_the_weights_that_they_read():
    column = OP_FEATURES.index("log_weights_per_thread")
    ops = replace(OPS, weight_bytes=np.full(len(OPS), 1e6))
    alone, shared = (np.expm1(2.0 * OpInputs.of(ops, profile(n)).values[:, column]) for n in (1, 2))
    assert alone.min() == alone.max() > 0  # of the whole model
    np.testing.assert_allclose(alone, 2 * shared, rtol=1e-4)


def test_a_checkpoint_comes_back_from_its_file(tmp_path):
    made = random_network()
    made.save(tmp_path / "costs.npz")
    read = CostNetwork.load(tmp_path / "costs.npz")
    assert (read.op_types, dict(read.about)) == (made.op_types, dict(made.about))
    np.testing.assert_array_equal(
        read.predict(OPS, profile(2)).seconds, made.predict(OPS, profile(2)).seconds
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda card: card | {"features": card["features"][1:]}, "other features"),
        (lambda card: card | {"schema": 0}, "other features"),
        (lambda card: {k: v for k, v in card.items() if k != "op_types"}, "no network of costs"),
        (lambda card: card | {"generations": ["AuthenticAMD"]}, "equally many"),
    ],
)
def test_a_checkpoint_for_something_else_is_refused(tmp_path, change, said):
    random_network().save(tmp_path / "costs.npz")
    with np.load(tmp_path / "costs.npz") as stored:
        arrays = dict(stored)
    arrays["card"] = np.array(json.dumps(change(json.loads(str(arrays["card"])))))
    np.savez(tmp_path / "other.npz", **arrays)
    with pytest.raises(CheckpointError, match=said):
        CostNetwork.load(tmp_path / "other.npz")


@pytest.mark.parametrize("threads", [1, 2])
def test_what_was_learned_of_a_kind_of_device_is_said_of_that_kind(threads):
    network, device = random_network(), profile(threads)
    assert network.kind(device) == threads
    np.testing.assert_allclose(network.predict(OPS, device).seconds, learned(network, device, kind=threads))


def learned(network: CostNetwork, device: DeviceProfile, kind: int) -> FloatArray:
    """What the network alone says."""
    inputs = OpInputs.of(OPS, device)
    correction, gate, _ = (one.mean(axis=0) for one in network.forward(inputs, kind))
    return inputs.seconds * np.exp(correction + gate)


def test_a_processor_of_another_generation_is_no_known_one_though_it_tells_the_same_of_itself(tmp_path):
    zen_4, zen_5 = "AuthenticAMD avx2", "AuthenticAMD avx2 avx_vnni"
    weights = random_network().weights
    weights = {**weights, "head.1": 0.1 * weights["head.1"]}
    replace(random_network(), weights=weights, generations=(zen_4, zen_4)).save(tmp_path / "costs.npz")
    network = CostNetwork.load(tmp_path / "costs.npz")
    old, new = (replace(profile(2), generation=one) for one in (zen_4, zen_5))
    assert (network.kind(old), network.kind(new)) == (2, 0)
    assert network.predict(OPS, old).doubt < network.predict(OPS, new).doubt


@pytest.mark.parametrize("source", ["assumed", "measured"])
def test_the_less_a_cpu_is_like_those_of_training_the_more_its_roofline_counts(source):
    network, counts = random_network(), []
    for times in (5, 10, 40):
        device = unlike(profile(2), times)
        device = replace(device, rates=tuple(replace(rate, source=source) for rate in device.rates))
        assert network.knows(device)
        assert network.kind(device) == 0
        alone, found = learned(network, device, kind=0), network.predict(OPS, device).seconds
        np.testing.assert_allclose(found / found.sum(), alone / alone.sum())
        roofline = Roofline.of(OPS, device).seconds.sum()
        counts.append(np.log(found.sum() / alone.sum()) / np.log(roofline / alone.sum()))
    assert 0 < counts[0] < counts[1] < counts[2] < 1
    # A calibration's roofline is trusted sooner than what is assumed of any CPU.
    assert (counts[0] > 0.4) == (source == "measured")


def test_another_device_than_a_cpu_that_is_unlike_all_is_estimated_by_its_roofline(known):
    graph = extract(random_model(3))
    [near] = estimates(graph, [profile(2)])
    assert near.source == LEARNED
    far = replace(unlike(profile(2)), threads=0)
    [other] = estimates(graph, [far])
    assert (other.source, other.doubt) == (ANALYTIC, 1.0)
    assert other.total == pytest.approx(Roofline.of(networks(1, 3)[0].ops, far).seconds.sum())


@pytest.mark.parametrize("times", [1, 2, 5])
def test_the_less_a_device_is_like_those_of_training_the_more_it_is_doubted(times):
    network = random_network()
    network = replace(network, weights={**network.weights, "head.1": 0.1 * network.weights["head.1"]})
    device = unlike(profile(2), times)
    assert network.knows(device)
    found = network.predict(OPS, device)
    doubt = network.forward(OpInputs.of(OPS, device), network.kind(device))[2].mean(axis=0)
    distance = np.sqrt(np.square(descriptor(device) - descriptor(profile(2))).mean())
    own = np.exp(doubt @ found.seconds / found.seconds.sum())
    assert np.log(found.doubt) == pytest.approx(own + 4 * distance)


def test_a_model_with_ops_that_training_has_not_seen_is_doubted():
    network = random_network()
    network.weights["head.1"][:] *= 0.1
    network.weights["embedding"][:, 0] = network.weights["embedding"][:, -1]  # of ops that it does not know
    assert ("MatMul", 2) in network.kernels
    seen = network.predict(OPS, profile(2))
    for without in ({"kernels": network.kernels - {("MatMul", 2)}}, {"op_types": TYPES[:-1]}):
        found = replace(network, **without).predict(OPS, profile(2))
        assert found.seconds == pytest.approx(seen.seconds)
        assert np.log(found.doubt) == pytest.approx(np.log(seen.doubt) + 0.5)


def test_what_was_counted_on_cpus_says_nothing_of_other_devices(known):
    assert known.knows(unlike(profile(1), 5))
    assert not known.knows(replace(unlike(profile(1), 5), threads=0))


def test_devices_that_are_compared_are_estimated_by_one_yardstick(known):
    far = replace(unlike(profile(2)), threads=0)
    found = estimates(extract(random_model(3)), [profile(2), far])
    assert [one.source for one in found] == [ANALYTIC, ANALYTIC]


def test_a_table_holds_what_the_network_predicts_of_its_groups(known):
    model = random_model(5)
    coarse = coarsen(extract(model))
    table = estimated_table(coarse, target(profile(2)), ("CPU",))
    [whole] = estimates(coarse.ops, [profile(2)])
    assert table.source == LEARNED
    assert table.doubt == whole.doubt > 1
    assert table.op_seconds.sum() == pytest.approx(whole.total)
    assert 0 < whole.work <= whole.total
    assert 0 < whole.kernels <= len(coarse.ops)


def test_the_shipped_network_can_be_used():
    from ov_autoplace.cost.learned import shipped_network

    prediction = shipped_network().predict(OPS, profile(2))
    assert (prediction.seconds >= 0).all()
    assert np.isfinite(prediction.seconds).all()
    assert 1 < prediction.doubt < 2


def test_factors_are_those_by_which_whole_models_differ_from_their_estimates():
    graphs = [extract(random_model(seed)) for seed in range(12)]
    device = replace(unlike(profile(2)), threads=0)  # its roofline
    wanted = {"matmul": 2.0, "elementwise": 0.5}
    truth = replace(device, factors=wanted)
    runs = [(graph, estimates(graph, [truth])[0].total) for graph in graphs]
    found = fitted_factors(device, runs)
    errors = [
        abs(np.log(estimates(graph, [replace(device, factors=found)])[0].total / seconds))
        for graph, seconds in runs
    ]
    before = [abs(np.log(estimates(graph, [device])[0].total / seconds)) for graph, seconds in runs]
    assert np.median(errors) < 0.6 * np.median(before)


def of_classes(models: int, seed: int = 0) -> np.ndarray:
    """Seconds by class of op, some of which most models do not have, ``float64[models, 6]``."""
    random = np.random.default_rng(seed)
    return 10 ** random.uniform(-5, -3, (models, 6)) * (random.random((models, 6)) < 0.6) + 1e-9


def test_a_device_that_is_slower_at_everything_gets_one_factor():
    estimated = of_classes(10)
    np.testing.assert_allclose(class_factors(estimated, 2.0 * estimated.sum(axis=1)), 2.0, rtol=0.15)
    one = class_factors(estimated[:1], 2.0 * estimated[:1].sum(axis=1))
    assert ((one > 1.0) & (one < 2.0)).all()  # one model may be an exception


def test_a_class_that_is_slower_gets_the_largest_factor():
    estimated = of_classes(20)
    measured = (estimated * [1.0, 3.0, 1.0, 1.0, 1.0, 1.0]).sum(axis=1)
    found = class_factors(estimated, measured)
    assert found.argmax() == 1
    before, after = (np.abs(np.log((estimated * f).sum(axis=1) / measured)).mean() for f in (1.0, found))
    assert after < 0.5 * before


def test_one_model_that_is_far_off_moves_nothing_by_much():
    estimated = of_classes(10)
    measured = estimated.sum(axis=1) * np.exp(np.random.default_rng(1).normal(0, 0.05, 10))
    measured[3] *= 50
    np.testing.assert_allclose(class_factors(estimated, measured), 1.0, rtol=0.25)


def test_models_that_took_or_are_estimated_to_take_no_time_say_nothing():
    estimated = of_classes(4)
    estimated[1] = 0
    measured = estimated.sum(axis=1) * [1.0, 1.0, 0.0, 1.0]
    np.testing.assert_allclose(class_factors(estimated, measured), 1.0, rtol=1e-9)


def test_factors_of_no_models_are_none():
    assert fitted_factors(profile(2), []) == {}
