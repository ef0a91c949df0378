"""The first compilation on AUTOPLACE: how long it takes, and many processes at once on one cold cache.

*First*: each model is compiled in a process of its own, by each device's plugin, then on AUTOPLACE, beside
what the devices take for the same model. Transfers between the devices are known from an earlier process, as
they are from the second model on that a user compiles. Wanted: 1 s and 3 times the sum of the devices'
compile times where one device is proven to be best; the budget and 4 times that sum elsewhere; both in the
median, and no model above twice.

*Cold*: processes compile one model at once with one cold ``CACHE_DIR``: all live, and one decides. Plain
OpenVINO (2026.4.1) loses some of the processes to SIGBUS: they map a blob that another one is writing.
"""

from __future__ import annotations

import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
from openvino import opset13 as opset

import zoo
from harness.environment import PAIRS, core_of
from harness.process import Failure, Pieces, in_child
from harness.race import know_transfers
from harness.result import Claim, Result, Table
from ov_autoplace.decide.machine import Machine
from ov_autoplace.decide.options import PlacerOptions
from ov_autoplace.decide.place import place_fitted
from ov_autoplace.graph.shapes import with_static_shapes
from ov_autoplace.plan.placement import Placement
from ov_autoplace.plugin.compilation import compile_placed
from problems.models import MODELS

_DEVICES = PAIRS["alias"]
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
    every = [n for n in _MODELS if n in MODELS]
    names = [
        n for n in (every if models or not quick else _QUICK) if not models or any(p in n for p in models)
    ]
    pieces = Pieces(_TIMEOUT)
    pieces("transfers", know_transfers, pair="alias")
    found = {name: one for name in names if (one := pieces(name, first_compilation, name=name)) is not None}
    table, claims = _first(found)
    cold, remark = cold_cache(2 if quick else cold_rounds, processes)
    return Result(
        "First compilation on AUTOPLACE",
        (table, cold),
        remarks=(remark, *pieces.remarks),
        claims=tuple(claims),
        data={"first": found},
    )


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
    start = time.perf_counter()
    (placement,) = _decided(core, with_static_shapes(model), PlacerOptions())
    seconds = time.perf_counter() - start
    decision = placement.decision
    return {
        "alone": alone,
        "seconds": seconds,
        "proven": "measure" not in decision.seconds,
        "disturbed": decision.disturbed,
        "chosen": decision.chosen,
        "phases": decision.seconds,
    }


def _decided(core: ov.Core, model: ov.Model, options: PlacerOptions) -> list[Placement]:
    """Compile a model as AUTOPLACE does; what was decided for it, nothing where that was known."""
    placements: list[Placement] = []

    def search(machine: Machine, given: ov.Model) -> Placement:
        placements.append(place_fitted(machine, given)[0])
        return placements[-1]

    machine = Machine(core, _DEVICES, options)
    compiled = compile_placed(machine, model.clone(), core.compile_model, search=search)
    compiled.create_infer_request().infer()
    return placements


def _first(found: dict[str, dict[str, Any]]) -> tuple[Table, list[Claim]]:
    rows, claims = [], []
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
            claims.append(Claim(f"{what}, median", 1.0, float(np.median(of_kind))))
            claims.append(Claim(f"{what}, largest", 2.0, max(of_kind)))
    columns = ("model", "devices' own s", "AUTOPLACE s", "wanted s", "share", "answer", "chosen")
    return Table("First compile on AUTOPLACE, transfers known", columns, rows), claims


def cold_compilation(folder: str, process: int) -> bool:
    """Compile the model of all processes with the cache in a folder; whether this process decided."""
    model = zoo.build("two_tower")
    first, *_, last = [
        op.get_friendly_name() for op in model.get_ordered_ops() if op.get_type_name() == "MatMul"
    ]
    pins = {first: "XCPU", last: "CPU"}
    options = PlacerOptions(pins=pins, properties={"CACHE_DIR": folder})
    return bool(_decided(core_of("alias"), model, options))


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
