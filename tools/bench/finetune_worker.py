"""One run of tools/bench/finetune.py, in a process of its own: prints its result as one line of JSON."""

from __future__ import annotations

import time

STARTED = time.perf_counter()  # before anything is loaded: loading is part of the budget

import argparse  # noqa: E402
import json  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

from ov_autoplace.cost.table_json import load_table  # noqa: E402

__all__ = ["RUNS", "SEARCHES"]

_PUBLISHED = "hsdag as published"
RUNS = ("pretrained", "hsdag", _PUBLISHED)
SEARCHES = ("pretrained simulated", "hsdag simulated")


def tune(arguments: argparse.Namespace) -> dict[str, Any]:
    """A fine-tuning on the devices of the pair; from scratch it is hsdag's network."""
    from device_race import core_of
    from real_models import PAIRS

    from ov_autoplace import finetune
    from ov_autoplace.training.finetuning.settings import FinetuneSettings

    scratch = arguments.task != "pretrained"
    settings = FinetuneSettings(learning_rate=1e-3) if scratch else FinetuneSettings()
    result = finetune(
        arguments.model,
        PAIRS[arguments.pair],
        checkpoint=None if scratch else arguments.checkpoint,
        config="hsdag",
        budget=arguments.budget,
        out=arguments.out,
        core=core_of(arguments.pair),
        seed=arguments.seed,
        settings=settings,
        started=STARTED,
    )
    (model,) = result.models
    return {
        "stopped": result.stopped,
        "before": model.before,
        "after": model.after,
        "best": model.best,
        "best_single": model.best_single,
        "measurements": model.measurements,
        "seconds": result.seconds,
    }


def tune_published(arguments: argparse.Namespace) -> dict[str, Any]:
    """HSDAG's own protocol on the devices of the pair."""
    from device_race import core_of
    from finetune_published import tune_as_published
    from real_models import PAIRS

    return tune_as_published(
        arguments.model,
        PAIRS[arguments.pair],
        core_of(arguments.pair),
        arguments.out,
        arguments.published_budget,
        arguments.evaluations,
        arguments.seed,
        STARTED,
    )


def search_simulated(arguments: argparse.Namespace) -> dict[str, Any]:
    """The papers' protocol on the simulator, from the checkpoint or from scratch."""
    from ov_autoplace.placement.simulator import simulate
    from ov_autoplace.policy.networks.checkpoint import load_network
    from ov_autoplace.solvers import solve
    from ov_autoplace.training.search import search

    pretrained = arguments.task == "pretrained simulated"
    network = load_network(arguments.checkpoint) if pretrained else "hsdag"
    table = load_table(arguments.model)
    result = search(table, network, arguments.evaluations, arguments.seed)
    solved = simulate(table, solve(table).assignment).latency_seconds
    return {"history": result.history.tolist(), "solved": solved}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", choices=(*RUNS, *SEARCHES))
    parser.add_argument("model", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--pair", required=True)
    parser.add_argument("--checkpoint", default="base")
    parser.add_argument("--budget", type=float, default=60.0)
    parser.add_argument("--published-budget", type=float, default=300.0)
    parser.add_argument("--evaluations", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    work = tune if arguments.task in RUNS else search_simulated
    if arguments.task == _PUBLISHED:
        work = tune_published
    print(json.dumps(work(arguments)))


if __name__ == "__main__":
    main()
