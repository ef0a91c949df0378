"""How long the first compile on AUTOPLACE takes, beside what the devices take for the same models.

Each model is compiled in a process of its own: by each device's plugin, then on AUTOPLACE. Hand-overs between
the devices are known from an earlier process, as they are from the second model on that a user compiles.
Bars: 1 s and 3 times the sum of the devices' compile times where one device is proven to be best; the budget
and 4 times that sum elsewhere; both in the median, and no model above twice.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from typing import Any

import numpy as np
import openvino as ov
from common import machine_line, print_table, unequal_pair
from model_set import MODELS
from openvino import opset13 as opset
from suite_process import Failure, in_child

import ov_autoplace

DEVICES = ("XCPU", "CPU")
BUDGET_SECONDS = 2.0
NAMES = (
    "zoo/inception_v3",
    "zoo/resnet50",
    "zoo/bert_base",
    "zoo/mobilenet_v2",
    "zoo/two_tower",
    "zoo/wavenet",
    "zoo/lstm_lm",
    "zoo/decoder",
    "zoo/unet",
    "zoo/vit_base",
    "zoo/gnmt",
    "zoo/mixture_of_experts",
    "transformers/bert",
    "transformers/vit",
    "transformers/resnet",
    "transformers/gpt2",
    "transformers/segformer",
    "transformers/yolos",
    "zoo-full/inception_v3",
    "zoo-full/resnet50",
)


def measure(name: str) -> dict[str, Any]:
    """Compile times of one model in this process, in seconds."""
    model = MODELS[name]()
    core = unequal_pair()
    x = opset.parameter([1, 8], np.float32)
    for device in DEVICES:  # the first model of a process pays for loading the plugin
        core.compile_model(ov.Model([opset.relu(x)], [x]), device)
    alone = 0.0
    for device in DEVICES:
        start = time.perf_counter()
        core.compile_model(model, device)
        alone += time.perf_counter() - start
    from ov_autoplace.decide.placer import Placer

    decisions = []
    place = Placer.place

    def placing(placer: Placer, model: ov.Model) -> ov_autoplace.Placement:
        placement = place(placer, model)
        decisions.append(placement.decision)
        return placement

    Placer.place = placing
    start = time.perf_counter()
    core.compile_model(model, f"AUTOPLACE:{','.join(DEVICES)}")
    seconds = time.perf_counter() - start
    decision = decisions[-1]
    return {
        "alone": alone,
        "seconds": seconds,
        "proven": "measure" not in decision.seconds,
        "disturbed": decision.disturbed,
        "chosen": decision.chosen,
        "phases": decision.seconds,
    }


def warm() -> None:
    """Measure hand-overs, so that no model pays for them."""
    import zoo

    ov_autoplace.place(
        zoo.build("inception_v3"), DEVICES, "TUNE", unequal_pair(), time_budget_ms=20_000, policy="none"
    )


def _bar(found: dict[str, Any]) -> float:
    return 1 + 3 * found["alone"] if found["proven"] else BUDGET_SECONDS + 4 * found["alone"]


def main() -> int:
    """Print the table; 1 when a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="*", default=[], help="parts of model names; all when left out")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds for one model")
    parser.add_argument("--json", metavar="FILE", help="also write, or add to, a JSON file")
    arguments = parser.parse_args()
    names = [n for n in NAMES if not arguments.models or any(part in n for part in arguments.models)]
    in_child("time_to_answer:warm", {}, timeout=arguments.timeout)
    results: dict[str, dict[str, Any]] = {}
    for name in names:
        found = in_child("time_to_answer:measure", {"name": name}, timeout=arguments.timeout)
        if isinstance(found, Failure):
            print(f"{name}: {found}", file=sys.stderr)
            continue
        results[name] = found
        print(name, json.dumps(found), file=sys.stderr, flush=True)
    if arguments.json:
        with open(arguments.json, "a", encoding="utf-8") as file:
            file.writelines(json.dumps({"model": name, **found}) + "\n" for name, found in results.items())
    print(machine_line())
    return _report(results, len(names))


def _report(results: dict[str, dict[str, Any]], asked: int) -> int:
    rows, shares = [], {True: [], False: []}
    for name, found in results.items():
        share = found["seconds"] / _bar(found)
        shares[found["proven"]].append(share)
        kind = "proven" if found["proven"] else "raced"
        cells = (f"{found['alone']:.2f}", f"{found['seconds']:.2f}", f"{_bar(found):.2f}", f"{share:.2f}")
        rows.append([name, *cells, kind, found["chosen"]])
    print_table(
        "First compile on AUTOPLACE, hand-overs known",
        ("model", "devices' own s", "AUTOPLACE s", "bar s", "of the bar", "answer", "chosen"),
        rows,
    )
    missed = len(results) < asked
    for proven, what in ((True, "one device proven best"), (False, "raced")):
        if shares[proven]:
            median, most = statistics.median(shares[proven]), max(shares[proven])
            print(f"{what}: {len(shares[proven])} models, median {median:.2f} of the bar, at most {most:.2f}")
            missed |= median > 1 or most > 2
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
