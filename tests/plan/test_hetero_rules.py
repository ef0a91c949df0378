"""Which rules HETERO has: what canaries tell, against HETERO itself and the plain rules, and what is kept."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import openvino as ov
import pytest

import reference_hetero as reference
from ov_autoplace._base import releases
from ov_autoplace._base.releases import HeteroRules
from ov_autoplace.cost.wiring import node_kinds
from ov_autoplace.decide.machine import Machine
from ov_autoplace.decide.options import PlacerOptions
from ov_autoplace.errors import PlacementError
from ov_autoplace.graph.extract import extract
from ov_autoplace.plan import hetero_rules
from ov_autoplace.plan.annotation import annotate
from ov_autoplace.plan.hetero_rules import CANARIES, StoredCounts, canary, stored_counts
from ov_autoplace.plan.legality import broken_bonds
from ov_autoplace.plan.partition import count_graph_subgraphs, number_devices
from ov_autoplace.plan.plan import SplitPlan
from ov_autoplace.plan.simulator import simulate
from ov_autoplace.plugin.compilation import _Compiler

PAIR = {"CPU": "CPU", "CANARYCPU": "XCPU"}
REFUSED = next(text for text, counts in CANARIES.items() if not counts[HeteroRules.REFUSING.value])


def plain_counts(rules: reference.Rules) -> tuple[int, ...]:
    """How many submodels the plain rules make of each canary, 0 where they refuse it."""
    counts = []
    for text in CANARIES:
        model = canary(text)
        graph = extract(model)
        readers = np.split(graph.tensor_consumers, graph.tensor_offsets[1:-1])
        plain = reference.Graph.of(
            node_kinds(graph).tolist(), graph.tensor_producer.tolist(), [r.tolist() for r in readers]
        )
        devices = [affinity(op) for op in model.get_ordered_ops()]
        numbers = [sorted(set(devices)).index(device) for device in devices]
        counts.append(reference.submodels(plain, reference.partition(plain, numbers, rules)) or 0)
    return tuple(counts)


def affinity(op: ov.Node) -> str:
    noted = op.get_rt_info()["affinity"]
    return getattr(noted, "value", noted)


def test_the_hetero_that_is_installed_counts_as_its_rules_say() -> None:
    expected = plain_counts(reference.RULES[releases.facts().hetero_rules])
    assert hetero_rules.canary_counts() == expected


@pytest.mark.parametrize("parts", list(itertools.product((False, True), repeat=3)))
def test_canaries_tell_each_set_of_rules_from_all_mixtures(parts: tuple[bool, bool, bool]) -> None:
    rules = reference.Rules(*parts)
    known = {rules: number for number, rules in enumerate(reference.RULES.values())}
    expected = list(zip(*CANARIES.values(), strict=True))
    assert (plain_counts(rules) in expected) == (rules in known)
    if rules in known:
        assert expected.index(plain_counts(rules)) == known[rules]


@pytest.fixture
def later_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A release that nobody knows, with an empty cache folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(releases, "installed", lambda: "2099.1.0")
    hetero_rules._counts_here.cache_clear()
    yield tmp_path
    hetero_rules._counts_here.cache_clear()


class Asked:
    """Plays HETERO, and counts how often it is asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, counts: tuple[int, ...]) -> None:
        self.times, self.counts = 0, counts
        monkeypatch.setattr(hetero_rules, "canary_counts", self)

    def __call__(self) -> tuple[int, ...]:
        self.times += 1
        return self.counts


@pytest.mark.parametrize("rules", list(HeteroRules), ids=lambda rules: rules.name)
def test_hetero_is_asked_once_on_a_machine(
    rules: HeteroRules, later_release: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Asked(monkeypatch, plain_counts(reference.RULES[rules]))
    for _ in range(2):
        assert hetero_rules.hetero_rules() is rules
        assert hetero_rules.are_rules_known()
        hetero_rules._counts_here.cache_clear()  # as in another process
    assert asked.times == 1
    monkeypatch.setattr(ov, "get_version", lambda: "2099.1.1")
    assert hetero_rules.hetero_rules() is rules
    assert asked.times == 2
    assert {StoredCounts.load(path).openvino for path in stored_counts()} >= {"2099.1.1"}


@pytest.mark.parametrize("damage", ["", "{}", "older canaries"])
def test_an_answer_that_cannot_be_used_is_replaced(
    damage: str, later_release: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Asked(monkeypatch, plain_counts(reference.RULES[HeteroRules.REFUSING]))
    hetero_rules.hetero_rules()
    (path,) = stored_counts()
    if damage == "older canaries":
        StoredCounts(ov.get_version(), ("xA 0B",), (2,)).save(path)
    else:
        path.write_text(damage)
    hetero_rules._counts_here.cache_clear()
    assert hetero_rules.hetero_rules() is HeteroRules.REFUSING
    assert asked.times == 2
    assert StoredCounts.load(path).rules is HeteroRules.REFUSING


def test_rules_that_nobody_knows_are_taken_for_the_newest_and_said_to_be_unknown(
    later_release: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one_more = tuple(count + 1 for count in plain_counts(reference.RULES[HeteroRules.ISOLATING]))
    Asked(monkeypatch, one_more)
    assert not hetero_rules.are_rules_known()
    assert hetero_rules.hetero_rules() is HeteroRules.ISOLATING
    assert len(list(stored_counts())) == 1


def test_where_every_model_fails_nothing_is_kept(
    later_release: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Asked(monkeypatch, (0,) * len(CANARIES))
    assert not hetero_rules.are_rules_known()
    assert not list(stored_counts())


def test_nobody_is_asked_about_a_single_device(later_release: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(monkeypatch, ())
    random = np.random.default_rng(0)
    simulate(reference.random_table(random, 5, 1), [0] * 5)
    assert count_graph_subgraphs(extract(canary(REFUSED)), np.zeros(11, np.int32)) == 1
    assert not asked.times
    simulate(reference.random_table(random, 5, 2), [0] * 5)
    assert asked.times


def test_a_release_that_is_known_is_not_asked(later_release: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(monkeypatch, ())
    monkeypatch.setattr(releases, "installed", lambda: "2025.4.1")
    assert hetero_rules.hetero_rules() is HeteroRules.REFUSING
    assert hetero_rules.are_rules_known()
    assert not asked.times


def on_the_pair(text: str) -> tuple[ov.Model, dict[str, str]]:
    """A canary without its affinities, and where its ops are to run."""
    model = canary(text)
    device_of = {op.get_friendly_name(): PAIR[affinity(op)] for op in model.get_ordered_ops()}
    for op in model.get_ordered_ops():
        del op.get_rt_info()["affinity"]
    return model, device_of


def test_what_a_release_refuses_is_said_with_an_op_of_each_side(monkeypatch: pytest.MonkeyPatch) -> None:
    model, device_of = on_the_pair(REFUSED)
    monkeypatch.setattr(releases, "installed", lambda: "2026.2.1")
    graph = extract(model)
    (bond,) = broken_bonds(graph, number_devices(graph.names, device_of))
    assert {device_of[bond.first], device_of[bond.second]} == {"CPU", "XCPU"}
    producers = graph.tensor_producer.tolist()
    readers = [r.tolist() for r in np.split(graph.tensor_consumers, graph.tensor_offsets[1:-1])]
    edges = {(graph.names[p], graph.names[c]) for p, own in zip(producers, readers, strict=True) for c in own}
    assert (bond.first, bond.second) in edges
    with pytest.raises(PlacementError, match=f"'{bond.first}' .* '{bond.second}'"):
        annotate(model.clone(), device_of)
    monkeypatch.setattr(releases, "installed", lambda: "2026.3.0")
    assert not broken_bonds(graph, number_devices(graph.names, device_of))
    annotate(model, device_of)


def test_a_model_that_was_annotated_for_another_release_is_refused_in_a_sentence(
    unequal_pair: ov.Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> ov.CompiledModel:
        raise RuntimeError("Cannot sort subgraphs!")

    model, device_of = on_the_pair(REFUSED)
    compiler = _Compiler(Machine(unequal_pair, ("XCPU", "CPU"), PlacerOptions()), model, refuse)
    monkeypatch.setattr(releases, "installed", lambda: "2026.2.1")
    with pytest.raises(PlacementError, match="wait for each other"):
        compiler.compile_split(SplitPlan.of(device_of))
    monkeypatch.setattr(releases, "installed", lambda: "2026.3.0")
    with pytest.raises(RuntimeError, match="Cannot sort"):  # nothing is known against it
        compiler.compile_split(SplitPlan.of(device_of))
