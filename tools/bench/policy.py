"""What the learned policy is worth: zero-shot, in the whole pipeline, on estimates, in time and memory.

    python tools/bench/policy.py [--checkpoint DIR] [--sections zero-shot,pipeline,...] [--json OUT] [--quick]

Sections:
    zero-shot   gaps of the policy's greedy answer on held-out networks and machines, beside its rivals
    scratch     the papers' protocol: HSDAG and GDP trained from scratch on single problems; takes an hour
    pipeline    gaps of the whole pipeline on the same problems, with and without the policy
    estimates   what is lost when only an estimate of the costs is known: the policy and the exact solver
    speed       time and memory of inference and of `annotate`, each in a fresh process without torch
    papers      the three models of the HSDAG paper on a machine calibrated to its single-device rows

The best placements known take most of the time; ``--cache`` keeps their latencies for the next policy.
``--finetune`` and ``--ablation`` name what tools/bench/finetune.py and ablation.py wrote, to have all results
in one file.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
from common import ROOT, machine_line, print_table
from policy_estimates import estimates
from policy_papers import papers
from policy_pipeline import pipeline
from policy_problems import HELD_OUT_SEED
from policy_request import Bar, Request
from policy_speed import speed
from policy_zero_shot import SEARCH_SEEDS, from_scratch, zero_shot

from ov_autoplace import __version__
from ov_autoplace._base.files import write_text_atomically
from ov_autoplace.policy.runner import PolicyRunner

SECTIONS = {
    "zero-shot": zero_shot,
    "scratch": from_scratch,
    "pipeline": pipeline,
    "estimates": estimates,
    "speed": speed,
    "papers": papers,
}


def main() -> None:
    arguments = _arguments()
    request = Request(
        policy=PolicyRunner(arguments.checkpoint),
        workloads=arguments.workloads,
        quick=arguments.quick,
        workers=arguments.workers,
        seconds=0.5 if arguments.quick else arguments.seconds,
        cache=arguments.cache,
    )
    print(machine_line())
    results: dict[str, Any] = {"about": _about(request), "sections": {}}
    bars: list[Bar] = []
    for name in arguments.sections:
        section = SECTIONS[name](request)
        results["sections"][name] = section.data
        bars += section.bars
        results["bars"] = [{**vars(bar), "is_met": bar.is_met} for bar in bars]
        _write(arguments.json, results)  # what is done stays when a later section fails
    for name, path in (("finetune", arguments.finetune), ("ablation", arguments.ablation)):
        if path is not None:
            results["sections"][name] = _read(path)
            _write(arguments.json, results)
    if bars:
        _print_bars(bars)


def _print_bars(bars: list[Bar]) -> None:
    print_table(
        "What was to be reached",
        ("bar", "at most", "reached", "met"),
        [(bar.what, f"{bar.limit:g}", f"{bar.reached:.3g}", "yes" if bar.is_met else "NO") for bar in bars],
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--checkpoint", help="folder of the policy; default: the one that is shipped")
    parser.add_argument(
        "--workloads",
        type=Path,
        default=ROOT / "build" / "workloads" / "held-out",
        help="folder of held-out workloads; written when missing (default: %(default)s)",
    )
    parser.add_argument("--sections", type=_sections, default=list(SECTIONS), help="names, with commas")
    parser.add_argument("--json", type=Path, help="also write everything to this file")
    parser.add_argument("--cache", type=Path, help="JSON file that keeps the best placements' latencies")
    parser.add_argument("--seconds", type=float, default=5.0, help="limit of each longer search")
    parser.add_argument("--workers", type=int, default=1, help="processes that search for best placements")
    parser.add_argument("--finetune", type=Path, help="results of tools/bench/finetune.py")
    parser.add_argument("--ablation", type=Path, help="results of tools/bench/ablation.py")
    parser.add_argument("--quick", action="store_true", help="a quarter of the problems, short searches")
    return parser.parse_args()


def _sections(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in SECTIONS:
            raise argparse.ArgumentTypeError(f"{name!r} is not a section; there are {', '.join(SECTIONS)}")
    return names


def _about(request: Request) -> dict[str, Any]:
    return {
        "machine": machine_line(),
        "command": " ".join(["python", *sys.argv]),
        "commit": _commit(),
        "cores": len(os.sched_getaffinity(0)),
        "versions": {
            "ov-autoplace": __version__,
            "openvino": ov.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
        "checkpoint": {"name": request.policy.card.name, "sha256": request.policy.card.digest},
        "seeds": {"machines": HELD_OUT_SEED, "search from scratch": SEARCH_SEEDS},
    }


def _commit() -> str:
    """The commit of the source tree, with a mark where it has changes; empty outside a repository."""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--abbrev=40", "--dirty"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def _read(path: Path) -> Any:
    text = path.read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()] if path.suffix == ".jsonl" else json.loads(text)


def _write(path: Path | None, results: dict[str, Any]) -> None:
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text_atomically(path, json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
