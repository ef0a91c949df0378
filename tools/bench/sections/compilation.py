"""The first compilation on AUTOPLACE: how long it takes, and many processes at once on one cold cache.

*First*: each model is compiled in a process of its own, by each device's plugin, then on AUTOPLACE, beside
what the devices take for the same model. Transfers between the devices are known from an earlier process, as
they are from the second model on that a user compiles. Wanted: 1 s and 3 times the sum of the devices'
compile times where one device is proven to be best; the budget and 4 times that sum elsewhere; both in the
median, and no model above twice.

*Cold*: processes compile one model at once with one cold ``CACHE_DIR``: all live, and one decides. Plain
OpenVINO 2026.4.1 loses some of the processes to SIGBUS: they map a blob that another one is writing.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
from openvino import opset13 as opset

import ov_autoplace
import zoo
from harness.environment import PAIRS, core_of
from harness.process import Failure, Pieces, in_child
from harness.result import Result, Table, bar
from ov_autoplace.decide.placer import Placer
from ov_autoplace.policy.card import NO_POLICY
from problems.models import MODELS

__all__ = ["cold_cache", "cold_compilation", "first_compilation", "know_transfers", "run"]

_DEVICES = PAIRS["alias"]
_AUTOPLACE = f"AUTOPLACE:{','.join(_DEVICES)}"
_BUDGET_SECONDS = 2.0
_TIMEOUT = 60.0
_MODELS = (
    *(f"zoo/{name}" for name in ("inception_v3", "resnet50", "bert_base", "mobilenet_v2", "two_tower")),
    *(f"zoo/{name}" for name in ("wavenet", "lstm_lm", "decoder", "unet", "vit_base", "gnmt")),
    "zoo/mixture_of_experts",
    *(f"transformers/{name}" for name in ("bert", "vit", "resnet", "gpt2", "segformer", "yolos")),
    "zoo-full/inception_v3",
    "zoo-full/resnet50",
)
_QUICK = ("zoo/mobilenet_v2", "zoo/bert_base")


def run(
    quick: bool,
    seed: int,
    models: tuple[str, ...] = (),
    cold_rounds: int = 20,
    processes: int = 8,
) -> Result:
    """Both.

    Args:
        quick: Two models, two rounds.
        seed: Not used: nothing here is random.
        models: Parts of names of those that are compiled for the first time; all when empty.
        cold_rounds: How often a cold cache is met.
        processes: At once.
    """
    names = [n for n in _MODELS if n in MODELS and (not models or any(part in n for part in models))]
    names = list(_QUICK) if quick and not models else names
    pieces = Pieces(_TIMEOUT)
    pieces("transfers", know_transfers)
    found = {name: one for name in names if (one := pieces(name, first_compilation, name=name)) is not None}
    table, remarks = _first(found)
    cold, remark = cold_cache(2 if quick else cold_rounds, processes)
    return Result(
        "First compilation on AUTOPLACE",
        (table, cold),
        remarks=(*remarks, remark, *pieces.remarks),
        data={"first": found},
    )


def know_transfers() -> None:
    """Measure transfers, so that no model pays for them."""
    model = zoo.build("inception_v3")
    ov_autoplace.place(model, _DEVICES, "TUNE", core_of("alias"), time_budget_ms=20_000, policy="none")


def first_compilation(name: str) -> dict[str, Any]:
    """Compile times of one model in this process, in seconds."""
    model = MODELS[name]()
    core = core_of("alias")
    x = opset.parameter([1, 8], np.float32)
    for device in _DEVICES:  # the first model of a process pays for loading the plugin
        core.compile_model(ov.Model([opset.relu(x)], [x]), device)
    start = time.perf_counter()
    for device in _DEVICES:
        core.compile_model(model, device)
    alone = time.perf_counter() - start
    with _placements() as placements:
        start = time.perf_counter()
        core.compile_model(model, _AUTOPLACE)
        seconds = time.perf_counter() - start
    decision = placements[-1].decision
    assert decision is not None
    return {
        "alone": alone,
        "seconds": seconds,
        "proven": "measure" not in decision.seconds,
        "disturbed": decision.disturbed,
        "chosen": decision.chosen,
        "phases": decision.seconds,
    }


@contextmanager
def _placements() -> Iterator[list[ov_autoplace.Placement]]:
    """What the plugin's placer decides, which a compiled model does not tell."""
    made: list[ov_autoplace.Placement] = []
    place = Placer.place_fitted

    def placing(placer: Placer, *arguments: Any) -> Any:
        placement, fitted = place(placer, *arguments)
        made.append(placement)
        return placement, fitted

    Placer.place_fitted = placing  # type: ignore[method-assign]
    try:
        yield made
    finally:
        Placer.place_fitted = place  # type: ignore[method-assign]


def _first(found: dict[str, dict[str, Any]]) -> tuple[Table, list[str]]:
    rows, remarks = [], []
    shares: dict[str, list[float]] = {"one device proven best": [], "raced": []}
    for name, one in found.items():
        wanted = 1 + 3 * one["alone"] if one["proven"] else _BUDGET_SECONDS + 4 * one["alone"]
        share, kind = one["seconds"] / wanted, "one device proven best" if one["proven"] else "raced"
        shares[kind].append(share)
        cells = (f"{seconds:.2f}" for seconds in (one["alone"], one["seconds"], wanted, share))
        rows.append((name, *cells, kind, one["chosen"]))
    for kind, of_kind in shares.items():
        if of_kind:
            what = f"{kind}, {len(of_kind)} models, share of what is wanted"
            remarks.append(bar(f"{what}, median", 1.0, float(np.median(of_kind))))
            remarks.append(bar(f"{what}, largest", 2.0, max(of_kind)))
    columns = ("model", "devices' own s", "AUTOPLACE s", "wanted s", "share", "answer", "chosen")
    return Table("First compile on AUTOPLACE, transfers known", columns, rows), remarks


def cold_compilation(folder: str, process: int) -> bool:
    """Compile the model of all processes with the cache in a folder; whether this process decided."""
    model = zoo.build("two_tower")
    first, *_, last = [
        op.get_friendly_name() for op in model.get_ordered_ops() if op.get_type_name() == "MatMul"
    ]
    config = {
        "CACHE_DIR": folder,
        "AUTOPLACE_POLICY": NO_POLICY,
        "AUTOPLACE_PINS": {first: "XCPU", last: "CPU"},
    }
    with _placements() as placements:
        compiled = core_of("alias").compile_model(model, _AUTOPLACE, config)
    compiled.create_infer_request().infer()
    return bool(placements)


def cold_cache(rounds: int, processes: int) -> tuple[Table, str]:
    """Rounds of processes that meet one cold cache, and the sentence that says how many went well."""
    rows, well = [], 0
    for i in range(rounds):
        with tempfile.TemporaryDirectory(prefix="ov-autoplace-bench-") as folder:
            with ThreadPoolExecutor(processes) as pool:
                pieces = [
                    pool.submit(in_child, cold_compilation, {"folder": folder, "process": p}, tries=1)
                    for p in range(processes)
                ]
                answers = [piece.result() for piece in pieces]
            entries = len(list(Path(folder).glob("autoplace-*.json")))
        died = [answer.reason for answer in answers if isinstance(answer, Failure)]
        decisions = answers.count(True)
        well += not died and decisions == entries == 1
        rows.append((i + 1, len(died), decisions, entries, "; ".join(sorted(set(died))) or "-"))
    columns = ("round", "died", "decisions", "entries", "of what")
    table = Table(f"{processes} processes on a cold CACHE_DIR", columns, rows)
    return table, f"{well} of {rounds} rounds of {processes} processes went well"
