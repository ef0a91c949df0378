"""What every stage of a decision keeps to, whatever kind of answer it is for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext

import openvino as ov
import pytest

from lane_models import towers
from ov_autoplace._base.budget import Budget
from ov_autoplace.decide.context import Context, Stage
from ov_autoplace.decide.machine import Machine
from ov_autoplace.decide.options import PlacerOptions
from ov_autoplace.decide.placer import STAGES
from ov_autoplace.decide.pools import without_hint
from ov_autoplace.decide.proposals import ProposalSource
from ov_autoplace.decide.stages import widths
from ov_autoplace.decide.verdict import Verdict
from ov_autoplace.graph.prepare import prepare
from places import CPU_PLUGIN

pytestmark = pytest.mark.alone

PAIR = ("XCPU", "CPU")


@pytest.fixture
def pair(two_cores: None) -> ov.Core:
    """Two devices whose threads nobody has chosen."""
    core = ov.Core()
    core.register_plugin(str(CPU_PLUGIN), "XCPU")
    return core


def context_of(core: ov.Core, seconds: float | None = None, **options: object) -> Context:
    """A decision about a model with branches on two devices; ``None`` = a budget that grows."""
    given = {} if seconds is None else {"time_budget_ms": 1e3 * seconds}
    machine = without_hint(Machine(core, PAIR, PlacerOptions.from_arguments({**given, **options})))
    budget = Budget(2.0 if seconds is None else seconds)
    source = ProposalSource(("portfolio",))
    return Context(machine, prepare(towers(2, 64)), budget, source, lambda _: nullcontext())


def run(context: Context, kinds: tuple[type[Stage], ...]) -> Iterator[tuple[Verdict | None, Verdict | None]]:
    """The answer before and after each stage, where anything is measured."""
    for kind in kinds:
        before, stage = context.verdict if context.has_verdict else None, kind()
        context.verdict = stage.decide(context, stage.propose(context))
        yield before, context.verdict if context.has_verdict else None


@pytest.mark.parametrize("asked", STAGES)
@pytest.mark.parametrize("seconds", [0.0, 2.0])
def test_a_stage_keeps_everybody_and_takes_one_of_them(pair, asked, seconds) -> None:
    context = context_of(pair, seconds)
    with context.machine.open(context.prepared, context.budget) as session:
        context.open(session)
        for before, after in run(context, STAGES[asked]):
            if context.is_final:
                break
            assert after is not None
            assert after.winner in after.candidates
            assert after.findings or before is None  # a first answer is one to be beaten
            # The plans of whoever was considered are still told of, perhaps as another candidate.
            kept = {candidate.plan.key for candidate in after.candidates}
            assert {c.plan.key for c in before.candidates if c.times} <= kept if before else True
            assert all(c.times for c in after.candidates if c.plan.is_default and not c.dropped)
        assert context.verdict.findings


@pytest.mark.parametrize("asked", STAGES)
def test_what_is_estimated_runs_nothing(pair, asked, monkeypatch) -> None:
    monkeypatch.setattr(Machine, "open", lambda *_: pytest.fail("something was compiled"))
    context = context_of(pair, mode="ZERO_SHOT")
    context.problem = context.machine.problem(context.costs.estimate(context.prepared))
    for kind in STAGES[asked]:
        context.verdict = kind().estimate(context)
    assert context.verdict.winner in context.verdict.candidates
    assert not any(candidate.times for candidate in context.verdict.candidates)


@pytest.mark.parametrize(
    ("seconds", "mode", "keeps"), [(None, "PROFILE", False), (30.0, "PROFILE", True), (30.0, "TUNE", True)]
)
def test_time_is_kept_of_a_budget_that_does_not_grow_and_is_free_again(
    pair, monkeypatch, seconds, mode, keeps
) -> None:
    monkeypatch.setattr(widths, "could_win", lambda *_: True)  # a width is worth a race
    context = context_of(pair, seconds, mode=mode, executor="HETERO")
    context.budget._clock = lambda: context.budget.started  # nothing takes time
    with context.machine.open(context.prepared, context.budget) as session:
        context.open(session)
        first, *later = (kind() for kind in STAGES["one request at a time"])
        context.verdict = first.decide(context, first.propose(context))
        for stage in later:
            stage.reserve(context)
        assert (context.budget.free < context.budget.left) is keeps
        _, narrower, _ = later
        assert narrower.propose(context)
        assert context.budget.free == context.budget.left
