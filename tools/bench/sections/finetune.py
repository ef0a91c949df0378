"""Fine-tuning on really measured latency: how soon it is within 1 % of the best placement known.

For each model and seed: `hsdag` and `gdp` in our machinery, simulator and all; `hsdag` as published, which is
episodes of REINFORCE and 2,000 placements, all of them run on the devices, in a budget of its own; and mode
TUNE, where solvers propose and nothing learns. All begin with random weights. Every run is a
process of its own, whose time counts from its start, loading included, and needs the machine to itself.

Of the pair ``gpu``, which may run on a virtual GPU, the models are the networks of ``problems/networks.py``,
where a mix of both devices can be faster than each. Of ``cpu`` they are those of ``problems/branching.py``,
placements are schedules on the lanes of one CPU, and one device alone is the whole model on one of the CPU's
widths.

The best placement known of a model is found in a last race in turns: of the best placements of all runs, the
solver's answer and the single devices; the fastest of these are compiled twice more and raced again, and only
that counts, so that nobody wins by the luck of one race. Whatever a run claims to have been within 1 % is
raced too before it counts. Only what the policy itself proposed is an evaluation of it; as published, also
what it had proposed before. Whoever did not get there needs more evaluations than it had,
nobody knows how many: the ratio of two runs is then a bound.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov

from harness.process import Pieces, shared_folder
from harness.result import Result, Table
from ov_autoplace.graph.passes import FOLDED, formed
from problems.models import SETS
from sections.finetune_race import WITHIN, Outcome, last_race
from sections.finetune_runs import tune, tune_as_published, tune_by_solvers

_RUNS = _HSDAG, _GDP, _PUBLISHED, _SOLVERS = (
    "hsdag",
    "gdp",
    "hsdag as published",
    "TUNE by solvers",
)
_SETS = {"gpu": "of both sorts", "cpu": "branching"}
_FAMILIES = {
    # Not great_circles: its ops are one group, so there is nothing to place.
    "gpu": ("radiance_field", "blended_radiance_fields", "random_feature_classifier", "fourier_attention"),
    # Where schedules on lanes win.
    "cpu": ("bidirectional LSTM/64", "sentence pair/40", "dual encoder/small"),
}


def run(
    quick: bool,
    seed: int,
    pair: str = "gpu",
    families: tuple[str, ...] = (),
    seeds: int = 3,
    budget: float = 60.0,
    published_budget: float = 300.0,
    evaluations: int = 2000,
    final_seconds: float = 20.0,
) -> Result:
    """All runs of each model, and the race that says what they were worth.

    Args:
        quick: One seed of one model, short budgets.
        seed: The first of the seeds.
        pair: Of devices.
        families: Models; the pair's when empty.
        seeds: How many.
        budget: Seconds of each run.
        published_budget: The same for HSDAG as published.
        evaluations: As published.
        final_seconds: For each race of the last ones.
    """
    families = families or _FAMILIES[pair]
    if quick:
        families, seeds, evaluations, final_seconds = families[:1], 1, min(evaluations, 20), 2.0
        budget, published_budget = min(budget, 20.0), min(published_budget, 20.0)
    ways = {
        _HSDAG: (tune, {"budget": budget, "network": "hsdag"}),
        _GDP: (tune, {"budget": budget, "network": "gdp"}),
        _PUBLISHED: (tune_as_published, {"budget": published_budget, "evaluations": evaluations}),
        _SOLVERS: (tune_by_solvers, {"budget": budget}),
    }
    pieces = Pieces()
    remarks: list[str] = []
    outcomes: list[Outcome] = []
    for family in families:
        model = _model_file(pair, family)
        runs: list[dict[str, Any]] = []
        for number, (kind, (way, limits)) in product(range(seed, seed + seeds), ways.items()):
            table = str(model.with_name(f"{model.stem}-{number}-{kind.replace(' ', '-')}.table.json"))
            what = {"model": str(model), "table": table, "pair": pair, "seed": number, **limits}
            found = pieces(f"{family}, seed {number}, {kind}", way, **what)
            if found is not None:
                runs.append({**found, "kind": kind, "seed": number, "table": table})
        what = {"model": str(model), "pair": pair, "runs": runs, "seconds": final_seconds}
        raced = pieces(f"{family}, last race", last_race, **what) if runs else None
        if raced is not None:
            outcomes += [Outcome(**fields) for fields in raced["outcomes"]]
            remarks.append(
                f"{family}: the best placement known is {raced['winner']}; the best single device takes "
                f"{raced['best_single']:.3f} of its time"
            )
    return Result(
        title=f"Fine-tuning by measured latency, pair {pair}",
        tables=(_table(outcomes, budget),),
        remarks=(*remarks, *(compared(outcomes, kind) for kind in _RUNS[1:]), *pieces.remarks),
        data={"outcomes": [asdict(outcome) for outcome in outcomes]},
    )


def _model_file(pair: str, family: str) -> Path:
    """The model, built when it is needed for the first time."""
    path = shared_folder() / pair / f"{re.sub(r'[^a-z0-9]+', '_', family.lower())}.xml"
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        model = SETS[_SETS[pair]][family]()
        ov.save_model(formed(model, FOLDED), path, compress_to_fp16=False)
    return path


def compared(outcomes: Sequence[Outcome], other: str) -> str:
    """Evaluations until within 1 % of the best known, of another kind of run over ``hsdag``'s here.

    The median over models and seeds where that one got there; a run that did not get there counts
    with all that it had, so that the median is a lower bound then.
    """
    known = {(o.model, o.seed): o for o in outcomes if o.kind == other}
    pairs = [(o, known[o.model, o.seed]) for o in outcomes if o.kind == _HSDAG and (o.model, o.seed) in known]
    reached = [(ours.evaluations, theirs) for ours, theirs in pairs if ours.evaluations is not None]
    ratios = [(theirs.evaluations or theirs.of) / ours for ours, theirs in reached]
    bounds = sum(theirs.evaluations is None for _, theirs in reached)
    median = f"{float(np.median(ratios)):.1f}" if ratios else "nothing is known"
    return (
        f"evaluations, {other} / {_HSDAG}: median {median} of {len(ratios)} pairs, of which {bounds} "
        f"are lower bounds; {len(pairs) - len(reached)} where {_HSDAG} did not get there"
    )


def _table(outcomes: Sequence[Outcome], budget: float) -> Table:
    """A row per model and kind; ``> n`` is a run that did not get there with all its n evaluations."""
    rows = []
    for model, kind in dict.fromkeys((o.model, o.kind) for o in outcomes):
        own = sorted((o for o in outcomes if (o.model, o.kind) == (model, kind)), key=lambda o: o.seed)
        there = [o for o in own if o.evaluations is not None]
        counts = [f"> {o.of}" if o.evaluations is None else str(o.evaluations) for o in own]
        cells = (
            _cell([o.of for o in own], ".0f"),
            _cell([o.measured for o in there], ".0f"),
            _cell([o.measurements for o in own], ".0f"),
            _cell([o.seconds for o in there], ".1f"),
            _cell([o.ratio for o in own], ".3f"),
            _cell([o.wall for o in own], ".1f"),
        )
        rows.append((model, kind, f"{len(there)} of {len(own)}", ", ".join(counts), *cells))
    columns = ("model", "run", "reached", "evaluations, by seed", "of", "measured", "spent", "seconds")
    title = f"until within {100 * (WITHIN - 1):.0f} % of the best known, budget {budget:g} s: medians (worst)"
    return Table(title, (*columns, "best / best known", "whole run s"), rows)


def _cell(values: Sequence[float | None], form: str) -> str:
    """The median of what is known, and its largest."""
    known = [value for value in values if value is not None]
    return f"{float(np.median(known)):{form}} ({max(known):{form}})" if known else "-"
