"""The whole pipeline on simulated tables: single devices, solvers, the policy's answer and draws from it.

PROFILE and TUNE run the best few candidates and take the fastest, which on a simulated table is the lowest
prediction. ZERO_SHOT cannot run anything and takes the policy's answer unless it is predicted to be much
slower.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from policy_gaps import Judged
from policy_problems import Solved
from policy_request import Bar, Request, Section
from policy_zero_shot import answers, problem_sets
from rich.progress import track

from ov_autoplace.cost.table import CostTable
from ov_autoplace.decide.proposals import Proposal, ProposalSource, propose
from ov_autoplace.decide.verdict import predicted
from ov_autoplace.placement.simulator import simulate_batch
from ov_autoplace.policy.runner import PolicyRunner

__all__ = ["pipeline", "zero_shot_choice"]

MEAN_GAP = 0.001


def pipeline(request: Request) -> Section:
    """All sets of problems of the section ``zero-shot``."""
    data: dict[str, Any] = {}
    bars = []
    for devices, sets in problem_sets(request).items():
        gaps = []
        for name, solved in sets.items():
            title = f"{name}, {devices} devices"
            judged, added = _judge(solved, request.policy, title)
            judged.show(f"Pipeline, {title}", "lowest prediction, with policy")
            print(f"The policy's answer or a draw is strictly the fastest candidate on {added} problems.\n")
            data[title] = {**judged.to_dict(), "policy_is_strictly_fastest": added}
            gaps.append(judged.gaps("lowest prediction, with policy"))
        mean = float(np.concatenate(gaps).mean())
        what = f"pipeline, {devices} devices: mean gap to the best known, %"
        bars.append(Bar(what, 100 * MEAN_GAP, 100 * mean))
    return Section(data, bars)


def zero_shot_choice(policy: PolicyRunner) -> Callable[[CostTable], np.ndarray]:
    """What ZERO_SHOT answers on an estimated table, ``int32[G]``."""

    def choice(table: CostTable) -> np.ndarray:
        contest = predicted(propose(table, ProposalSource(policy=policy)))
        return np.asarray(contest.winner.proposal.assignment)

    return choice


def _judge(solved: Sequence[Solved], policy: PolicyRunner, text: str) -> tuple[Judged, int]:
    names = (
        "lowest prediction, with policy",
        "lowest prediction, without policy",
        "as ZERO_SHOT chooses",
        "best single device",
    )
    seconds = {name: np.full(len(solved), np.nan) for name in names}
    single = answers(policy)["best single device"]
    choice = zero_shot_choice(policy)
    added = 0
    for i, s in enumerate(track(solved, text)):
        table = s.problem.true
        proposals = propose(table, ProposalSource(policy=policy))
        without = min(_others(proposals))
        values = (
            min(p.predicted_seconds for p in proposals),
            without,
            float(simulate_batch(table, choice(s.problem.shown)[None])[0]),
            float(simulate_batch(table, single(s.problem)[0][None])[0]),
        )
        for name, value in zip(names, values, strict=True):
            seconds[name][i] = value
        added += values[0] < without * (1 - 1e-9)
    return Judged(solved, seconds), added


def _others(proposals: Sequence[Proposal]) -> list[float]:
    """Predictions of the candidates that do not depend on the policy.

    Where the policy proposes what another source did before, the candidate bears that one's name.
    """
    return [p.predicted_seconds for p in proposals if not p.name.startswith("policy")]
