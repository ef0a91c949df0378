"""Training the network of costs, on costs that follow a formula."""

from __future__ import annotations

from dataclasses import replace
from itertools import cycle

import numpy as np
import pytest

from collected import NETWORKS, networks, profile, samples_of

torch = pytest.importorskip("torch")

from ov_autoplace.cost.features import OpInputs  # noqa: E402
from ov_autoplace.cost.samples import CostSamples, Setting  # noqa: E402
from ov_autoplace.errors import OptionError, TrainingError  # noqa: E402
from ov_autoplace.policy.networks.messages import IMPLEMENTATIONS, Topology, default_implementation  # noqa: E402
from ov_autoplace.training.costs import _balanced, _Model, train_costs  # noqa: E402
from ov_autoplace.training.judging import is_validation, judge  # noqa: E402
from ov_autoplace.training.settings import CostSettings  # noqa: E402

SMALL = CostSettings(members=2, hidden=16, epochs=4, threads=1)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_the_trained_network_is_the_one_that_is_used(implementation):
    if implementation == "dgl" and default_implementation() != "dgl":
        pytest.skip("DGL is not installed, or does not work with this torch")
    used = train_costs([samples_of(NETWORKS)], SMALL)
    model = _Model(len(used.op_types), torch.arange(2), SMALL)
    kind = used.kind(profile(2))
    assert kind
    for network, member in zip(NETWORKS, cycle(range(SMALL.members))):
        with torch.no_grad():
            for name, value in model.named_parameters():
                if name == "speed":
                    continue  # which is forgotten
                trained = used.weights[_name(name)][member]
                value.copy_(torch.from_numpy(trained.T if name.endswith("weight") else trained))
        inputs = OpInputs.of(network.ops, profile(2))
        source, to = torch.from_numpy(inputs.edges.astype(np.int64).T.copy())
        topology = Topology(source, to, len(network.ops), implementation=implementation)
        rows = torch.from_numpy(used.rows(inputs.op_types))
        with torch.no_grad():
            kinds = torch.full((len(rows),), kind)
            correction, gate, doubt = model(rows, torch.from_numpy(inputs.values), topology, kinds)
        for expected, found in zip((correction, gate, doubt), used.forward(inputs, kind), strict=True):
            np.testing.assert_allclose(found[member], expected.numpy(), rtol=1e-5, atol=1e-5)


def _name(parameter: str) -> str:
    if parameter == "head_kind":
        return "head.kind"
    for torch_name, name in (("head0", "head.0"), ("head1", "head.1")):
        if parameter.startswith(torch_name):
            return name + (".bias" if parameter.endswith("bias") else "")
    return parameter.removeprefix("layers.")


def test_training_learns_by_how_much_ops_differ_from_the_roofline():
    network = train_costs(
        [samples_of(networks(40))],
        CostSettings(members=1, hidden=32, epochs=30, networks_per_step=2, threads=1),
    )
    unseen = samples_of(networks(12, first=500))
    learned, roofline = (judge(unseen, which).summary() for which in (network, None))
    assert learned["typical"] < 1.15 < roofline["typical"]
    assert learned["ratio_error"] < 0.1


def test_networks_of_small_files_are_seen_several_times():
    large, small = [[[]] for _ in range(32)], [[[]], [[]]]
    seen = [id(network) for network in _balanced([large, small, []])]
    assert [seen.count(id(network)) for network in large] == 32 * [1]
    assert [seen.count(id(network)) for network in small] == 2 * [4]
    assert len(seen) == 40


def test_what_a_busy_hour_takes_longer_is_not_learned():
    samples = samples_of(networks(40))
    later = tuple(replace(s, name=f"{s.name}; later", device=f"{s.device}; later") for s in samples.settings)
    busy = [
        replace(m, setting=m.setting + 2, seconds=1.5 * m.seconds, kernel_seconds=1.5 * m.kernel_seconds)
        for m in samples.measurements
        if m.network % 3  # most networks were seen in the busy hour alone
    ]
    quiet = [m for m in samples.measurements if not m.network % 3]
    both = replace(samples, settings=samples.settings + later, measurements=(*quiet, *busy))
    network = train_costs(
        [both], CostSettings(members=1, hidden=32, epochs=30, networks_per_step=2, threads=1)
    )
    factors = judge(samples_of(networks(12, first=500)), network).factors
    assert abs(np.median(factors)) < np.log(1.12)


def test_what_other_work_made_longer_counts_less_than_what_nothing_disturbed():
    """Though it is slightly more than half of all."""
    samples = samples_of(networks(60))
    disturbed = [
        replace(m, seconds=1.4 * m.seconds, kernel_seconds=1.4 * m.kernel_seconds)
        if m.network % 20 < 11
        else m
        for m in samples.measurements
    ]
    network = train_costs(
        [replace(samples, measurements=tuple(disturbed))],
        CostSettings(members=1, hidden=32, epochs=30, networks_per_step=2, threads=1),
    )
    factors = judge(samples_of(networks(12, first=500)), network).factors
    assert np.median(factors) < np.log(1.09)


def test_by_what_a_device_tells_wrongly_of_itself_is_learned_of_its_kind():
    """Its calibration is right, and the two are told apart by the rate of copies alone."""

    def with_a_slow_claim(setting: Setting) -> Setting:
        device = setting.targets[0].devices[0].slower(2.0)
        rates = [replace(r, per_second=r.per_second / 1.3 ** (r.op_class == "copy")) for r in device.rates]
        told = replace(setting.targets[1], devices=(replace(device, rates=tuple(rates)),))
        return replace(setting, targets=(setting.targets[0], told))

    def collected(count: int, first: int = 0) -> CostSamples:
        samples = samples_of(networks(count, first))
        return replace(samples, settings=tuple(map(with_a_slow_claim, samples.settings)))

    network = train_costs(
        [collected(40)], CostSettings(members=1, hidden=32, epochs=30, networks_per_step=2, threads=1)
    )
    for known in (0, 1):
        factors = judge(collected(12, first=500), network, known).factors
        assert abs(np.median(factors)) < np.log(1.1)


def test_the_same_seed_gives_the_same_bits():
    first, second, other = (
        train_costs([samples_of(NETWORKS)], CostSettings(seed=seed, members=2, hidden=8, epochs=2, threads=1))
        for seed in (1, 1, 2)
    )
    assert all((first.weights[name] == second.weights[name]).all() for name in first.weights)
    assert not all((first.weights[name] == other.weights[name]).all() for name in first.weights)
    members = [tuple(member.ravel()) for one in (first, other) for member in one.weights["values"]]
    assert len(set(members)) == 4  # other seeds share no member


def test_without_layers_every_op_is_predicted_by_itself():
    network = train_costs(
        [samples_of(NETWORKS)], CostSettings(members=2, hidden=8, layers=0, epochs=1, threads=1)
    )
    assert not any(name.endswith(".self") for name in network.weights)
    assert np.isfinite(network.predict(NETWORKS[0].ops, profile(2)).seconds).all()


def test_a_tenth_of_the_networks_is_kept_for_validation_with_its_measurements():
    samples = samples_of(networks(100))
    kept, rest = samples.part(is_validation), samples.part(lambda network: not is_validation(network))
    assert 3 <= len(kept.networks) <= 20
    assert {*kept.names} | {*rest.names} == {*samples.names}
    assert not {*kept.names} & {*rest.names}
    assert len(kept.measurements) == 2 * len(kept.networks)
    for measurement in kept.measurements:
        ops = kept.networks[measurement.network].ops
        assert len(measurement.kernel_of) == len(ops)


def test_nothing_to_learn_from_is_said():
    with pytest.raises(TrainingError, match="no measurements"):
        train_costs([CostSamples()], SMALL)


@pytest.mark.parametrize(
    ("field", "value"), [("hidden", 0), ("members", 0), ("layers", -1), ("average", 1.0)]
)
def test_impossible_settings_are_refused(field, value):
    with pytest.raises(OptionError, match=field):
        CostSettings(**{field: value})
