"""Hotter draws: how likely each is, what moves together, and when the temperature rises and falls."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ov_autoplace.errors import OptionError
from ov_autoplace.policy.features import PolicyGraph
from ov_autoplace.policy.networks.distribution import PolicyOutput
from ov_autoplace.problem.problem import Problem
from ov_autoplace.training.finetuning.exploration import (
    Exploration,
    explore,
    is_novel,
    work_shares,
)
from ov_autoplace.training.finetuning.settings import FinetuneSettings
from training.chains import chain_table, fast_and_slow

pytestmark = pytest.mark.torch

GROUPINGS = PolicyGraph.of(Problem.of(chain_table(fast_and_slow([0] * 8 + [1] * 8 + [0] * 8)))).groupings


def output_of(margins) -> PolicyOutput:
    """A policy that prefers device 0 by so many nats, unit by unit."""
    margins = torch.as_tensor(margins, dtype=torch.float32)
    N = len(margins)
    logits = torch.stack([margins, torch.zeros(N)], dim=1)
    return PolicyOutput(logits, torch.arange(N), torch.zeros(N, dtype=torch.int64), 1)


def draws(margins, temperature: float, k: int = 4000, groupings=GROUPINGS) -> np.ndarray:
    return explore(output_of(margins), groupings, k, temperature, torch.Generator().manual_seed(0)).numpy()


def test_at_temperature_one_every_unit_is_drawn_from_the_softmax_of_its_own_logits():
    margins = np.linspace(-2, 2, 24)
    share = draws(margins, 1.0).mean(axis=0)
    assert np.allclose(share, 1 / (1 + np.exp(margins)), atol=0.03)


def test_hotter_draws_have_temperatures_that_are_uniform_in_the_logarithm():
    temperatures = 16.0 ** np.linspace(0, 1, 1001)
    expected = np.mean(1 / (1 + np.exp(8.0 / temperatures)))
    assert draws(np.full(24, 8.0), 16.0).mean() == pytest.approx(expected, abs=0.03)


def test_units_of_a_group_move_together_and_the_least_sure_ones_first():
    margins = np.arange(24.0)  # one order of doubt along the chain
    found = draws(margins, 8.0)
    sizes = {len(found[0]), *(int(group.max()) + 1 for group in GROUPINGS)}
    # In the draws with one noise for the whole graph, whoever moves, all that are less sure move too.
    assert not GROUPINGS[-1].any()
    ordered = (np.diff(found, axis=1) <= 0).all(axis=1)
    assert ordered.mean() > 0.95 / len(sizes)
    independent = draws(margins, 8.0, groupings=())
    assert (np.diff(independent, axis=1) <= 0).all(axis=1).mean() < 0.5 * ordered.mean()


def test_groups_give_placements_with_few_crossings_where_a_policy_is_sure_of_one_device():
    found = draws(np.full(24, 8.0), 32.0)
    mixes = found[(found != found[:, :1]).any(axis=1)]
    crossings = (np.diff(mixes, axis=1) != 0).sum(axis=1)
    assert np.quantile(crossings, 0.25) <= 4
    alone = draws(np.full(24, 8.0), 32.0, groupings=())
    alone = alone[alone.sum(axis=1) >= 8]  # as many units away as the middle of the chain has
    assert np.quantile((np.diff(alone, axis=1) != 0).sum(axis=1), 0.25) >= 8


def test_forbidden_devices_are_never_drawn_however_hot():
    margins = np.zeros(24)
    margins[5], margins[6] = np.inf, 3.0
    output = output_of(margins)
    logits = output.logits.clone()
    logits[5] = torch.tensor([0.0, -torch.inf])
    logits[7] = torch.tensor([-torch.inf, 0.0])
    output = PolicyOutput(logits, output.row_of, output.graph_of_row, 1)
    found = explore(output, GROUPINGS, 500, 32.0, torch.Generator().manual_seed(0)).numpy()
    assert (found[:, 5] == 0).all()
    assert (found[:, 7] == 1).all()


def test_units_that_one_decision_places_stay_together():
    rows = torch.arange(24) // 3
    logits = torch.zeros(8, 2)
    output = PolicyOutput(logits, rows, torch.zeros(8, dtype=torch.int64), 1)
    found = explore(output, GROUPINGS, 200, 4.0, torch.Generator().manual_seed(0)).numpy()
    assert (found.reshape(200, 8, 3) == found.reshape(200, 8, 3)[:, :, :1]).all()
    assert len(np.unique(found, axis=0)) > 20


def test_the_same_seed_gives_the_same_draws():
    assert np.array_equal(draws(np.zeros(24), 8.0, 50), draws(np.zeros(24), 8.0, 50))


SETTINGS = FinetuneSettings(heating=2.0, hottest=5.0)


def test_the_temperature_rises_when_nothing_is_new_and_falls_when_something_is_promising():
    exploration = Exploration()
    seen = []
    for fresh, promising in ((False, False),) * 3 + ((True, False), (False, False), (True, True)):
        seen.append(exploration.temperature(SETTINGS))
        exploration.note(SETTINGS, fresh, promising, moving=False)
    assert seen == [1.0, 2.0, 4.0, 5.0, 5.0, 5.0]
    assert exploration.temperature(SETTINGS) == 1.0


def test_only_rounds_at_the_highest_temperature_try_patience():
    exploration = Exploration()
    idle = []
    for fresh in (False, False, False, False, False, True, False):
        exploration.note(SETTINGS, fresh, False, moving=False)
        idle.append(exploration.idle)
    assert idle == [0, 0, 0, 1, 2, 0, 1]


def test_a_policy_that_is_on_its_way_to_something_is_not_done():
    exploration = Exploration(steps=10)
    exploration.note(SETTINGS, fresh=False, promising=False, moving=True)
    assert exploration.idle == 0


def test_without_heat_every_round_without_anything_new_counts():
    exploration = Exploration()
    cold = FinetuneSettings(hottest=1.0)
    for _ in range(3):
        exploration.note(cold, fresh=False, promising=False, moving=False)
    assert (exploration.idle, exploration.temperature(cold)) == (3, 1.0)


def test_what_moves_too_little_of_the_work_is_not_novel():
    shares = work_shares(chain_table([[1.0, 3.0], [1.0, 1.0], [95.0, 95.0], [1.0, 1.0]]))
    assert np.allclose(shares, [0.02, 0.01, 0.96, 0.01], atol=0.01)
    known = [np.array([0, 0, 0, 0]), np.array([1, 1, 1, 1])]
    assert not is_novel(np.array([0, 1, 0, 0]), known, shares, 0.1)
    assert not is_novel(np.array([1, 1, 1, 0]), known, shares, 0.1)
    assert is_novel(np.array([1, 1, 1, 0]), known[:1], shares, 0.1)
    assert is_novel(np.array([0, 0, 1, 0]), known, np.full(4, 0.25), 0.25)
    assert is_novel(np.array([0, 0, 1, 0]), [], shares, 0.1)


def test_ops_without_any_cost_all_count_the_same():
    assert np.allclose(work_shares(chain_table(np.zeros((4, 2)))), 0.25)


@pytest.mark.parametrize(
    ("name", "value"), [("heating", 1.0), ("hottest", 0.5), ("hottest", float("inf")), ("novelty", -0.1)]
)
def test_settings_that_make_no_sense_are_refused(name, value):
    with pytest.raises(OptionError, match=name):
        FinetuneSettings(**{name: value})
