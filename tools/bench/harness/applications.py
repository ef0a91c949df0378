"""Applications as the sections decide them and run them anew, each in the process of one piece."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from harness.environment import PAIRS, core_of
from harness.process import Pieces
from ov_autoplace._base.budget import Budget
from ov_autoplace.application.answer import ApplicationPlan
from ov_autoplace.application.bench import Bench, Model
from ov_autoplace.application.candidates import Joint, predict, proposals, rivals
from ov_autoplace.application.place import place_application
from ov_autoplace.application.race import JointRace
from ov_autoplace.application.workload import Application
from ov_autoplace.devices.widths import Cores
from ov_autoplace.plan.joint import JointPlan

DEFAULT = "OpenVINO's default"
OWN = (DEFAULT, "THROUGHPUT", "no pinning", "best hint of each alone")
"""What OpenVINO offers, by the names of rivals."""

_SECONDS = 120.0


def each(
    pieces: Pieces, names: Iterable[str], parts: Sequence[str], piece: Callable[..., Any], **arguments: Any
) -> dict[str, Any]:
    """What a piece gives for each of some applications by name, as far as it does not fail.

    Args:
        pieces: Runs it, and says which fail.
        names: Of the applications.
        parts: Those that have one of them in their names; all where there are none.
        piece: Takes a ``name`` and the arguments.
        arguments: The others.
    """
    wanted = [name for name in names if not parts or any(part in name for part in parts)]
    found = {name: pieces(name, piece, name=name, **arguments) for name in wanted}
    return {name: one for name, one in found.items() if one is not None}


@dataclass(frozen=True, eq=False)
class Decided:
    """An application with its answer and who is raced against it.

    Attributes:
        answer: What was decided.
        seconds: What that took.
        race: Of the application opened anew.
        plan: The answer as the race knows it.
        joints: It and all rivals, their rates predicted.
    """

    answer: ApplicationPlan
    seconds: float
    race: JointRace
    plan: Joint
    joints: list[Joint]


@contextmanager
def opened(application: Application, seed: int) -> Iterator[JointRace]:
    """The race of an application on the CPU, each model timed alone."""
    budget = Budget(_SECONDS)
    with Bench(application, core_of("cpu"), PAIRS["cpu"], budget=budget, seed=seed) as bench:
        bench.measure_alone()
        yield JointRace(bench, budget, seed)


@contextmanager
def decided(application: Application, seed: int) -> Iterator[Decided]:
    """An application decided as a user's would be, then opened anew."""
    start = time.perf_counter()
    answer = place_application(application, PAIRS["cpu"], core_of("cpu"), seed=seed)
    seconds = time.perf_counter() - start
    with opened(application, seed) as race:
        bench, cores = race.bench, Cores.of_this_process().usable
        known = rivals(bench.models, cores)
        alike = (j for j in (*known, *proposals(bench.models, cores)) if j.plan.key == answer.plan.key)
        # Of many models, not every combination is proposed, and which ones depends on times.
        plan = next(alike, None) or of_settings(answer.plan, bench.models)
        joints = list(dict.fromkeys([*known, plan]))
        for joint in joints:
            predict(joint, bench.models, application, cores)
        yield Decided(answer, seconds, race, plan, joints)


def of_settings(plan: JointPlan, models: Sequence[Model]) -> Joint:
    """A plan as a candidate, made of the ways in which its models run."""
    by_model = [{setting.plan: setting for setting in model.settings} for model in models]
    settings = [known[plan.part(m.name).plan] for m, known in zip(models, by_model, strict=True)]
    return Joint(plan.name, plan, settings=tuple(settings))
