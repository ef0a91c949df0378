"""A language model, its prompt and then one token at a time: AUTOPLACE for both beside OpenVINO's default.

Decoders with random weights are exported by optimum-intel, stateful, as people export theirs. AUTOPLACE is
told both sets of shapes and how often each comes, so that the width is decided for their sum. Answer and
default are compiled several times, and run in turns. The environment of ``make test-native`` has
optimum-intel; without it nothing is measured, which a remark says.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import openvino as ov

import ov_autoplace  # noqa: F401 - makes the device name AUTOPLACE known
from harness.applications import each
from harness.process import Pieces
from harness.result import Case, Claim, Result, Table, interval_cell, measured_ratio
from ov_autoplace._base.statistics import paired_ratio

_TIMEOUT = 180.0
_PROMPT, _TOKENS = 128, 64
_STARTS, _ROUNDS = 3, 9
_NEVER_BELOW = 0.98
_OURS, _DEFAULT = "AUTOPLACE:CPU", "CPU"
_PHASES = ("whole answer", "prompt", "decode")

MODELS: Mapping[str, tuple[int, int]] = {
    "llama 4 x 128": (4, 128),
    "llama 4 x 256": (4, 256),
    "llama 8 x 512": (8, 512),
}
"""Layers and their width."""


def run(
    quick: bool, seed: int, models: tuple[str, ...] = (), prompt: int = _PROMPT, tokens: int = _TOKENS
) -> Result:
    """A row for each decoder; about three minutes.

    Args:
        quick: The smallest one, compiled once.
        seed: Of weights.
        models: Parts of their names; all when empty.
        prompt: Tokens of it.
        tokens: That follow, one inference each.
    """
    pieces = Pieces(timeout=_TIMEOUT)
    names, starts = (list(MODELS)[:1], 1) if quick else (MODELS, _STARTS)
    found = each(
        pieces, names, models, decide_and_run, seed=seed, starts=starts, prompt=prompt, tokens=tokens
    )
    return result_of(found, tokens, pieces.remarks)


def decide_and_run(name: str, seed: int, starts: int, prompt: int, tokens: int) -> dict[str, Any]:
    """Compile one decoder both ways, and have both answer in turns.

    Returns:
        ``threads`` of each time that AUTOPLACE decided, and seconds of each round: by device, of prompt and
        decode.
    """
    core, model = ov.Core(), exported(*MODELS[name], seed)
    shapes = json.dumps([_call(prompt, prompt), {**_call(1, prompt + 1), "times": tokens}])
    asked = {_OURS: {"AUTOPLACE_SHAPES": shapes}, _DEFAULT: {}}
    seconds: dict[str, list[tuple[float, float]]] = {who: [] for who in asked}
    threads, deciding = [], []
    for _ in range(starts):
        start = time.perf_counter()
        requests = {}
        for who, properties in asked.items():
            compiled = core.compile_model(model, who, properties)
            requests[who] = compiled.create_infer_request()
            if who == _OURS:
                deciding.append(time.perf_counter() - start)
                threads.append(int(compiled.get_property("INFERENCE_NUM_THREADS")))
        for request in requests.values():
            answer(request, prompt, tokens)
        for turn in range(_ROUNDS):
            for who in list(requests) if turn % 2 == 0 else reversed(requests):
                seconds[who].append(answer(requests[who], prompt, tokens))
    return {"threads": threads, "decision_seconds": deciding, "seconds": seconds}


def exported(layers: int, width: int, seed: int) -> ov.Model:
    """A stateful decoder with random weights, as optimum-intel exports it."""
    import torch
    from optimum.intel import OVModelForCausalLM
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    sizes = {"hidden_size": width, "intermediate_size": 3 * width, "num_hidden_layers": layers}
    heads = {"num_attention_heads": width // 32, "num_key_value_heads": width // 64}
    network = LlamaForCausalLM(LlamaConfig(vocab_size=2000, **sizes, **heads)).eval()
    with tempfile.TemporaryDirectory() as folder:
        network.save_pretrained(folder)
        model: ov.Model = OVModelForCausalLM.from_pretrained(folder, export=True, compile=False).model
    return model


def answer(request: ov.InferRequest, prompt: int, tokens: int) -> tuple[float, float]:
    """Seconds of a prompt, and of the tokens after it."""
    request.reset_state()
    start = time.perf_counter()
    request.infer(_inputs(prompt, prompt), share_outputs=True)
    begun = time.perf_counter()
    for length in range(prompt + 1, prompt + tokens + 1):
        request.infer(_inputs(1, length), share_outputs=True)
    return begun - start, time.perf_counter() - begun


def _inputs(count: int, length: int) -> dict[str, np.ndarray]:
    """Of the last tokens of so many; which tokens they are makes no difference to the time."""
    return {
        "input_ids": np.ones((1, count), np.int64),
        "attention_mask": np.ones((1, length), np.int64),
        "position_ids": np.arange(length - count, length)[None],
        "beam_idx": np.zeros(1, np.int32),
    }


def _call(count: int, length: int) -> dict[str, Any]:
    """Their shapes, as ``AUTOPLACE_SHAPES`` takes them."""
    return {"shapes": {name: list(values.shape) for name, values in _inputs(count, length).items()}}


def result_of(found: Mapping[str, Mapping[str, Any]], tokens: int, failures: Sequence[str]) -> Result:
    """What was found of all decoders, and whether it is as wanted."""
    rows, cases, ratios, worst, wins = [], [], [], [], []
    for name, one in found.items():
        phases = {who: np.array(seconds).T for who, seconds in one["seconds"].items()}
        ours, default = ([both.sum(axis=0), *both] for both in (phases[_OURS], phases[_DEFAULT]))
        cells = []
        for phase, mine, other in zip(_PHASES, ours, default, strict=True):
            ratio = paired_ratio(mine, other)
            cells.append(interval_cell(ratio))
            wins += [f"{name}, {phase}"] if ratio.high < 1 else []
            if phase == _PHASES[0]:
                worst.append(ratio.median)
                threads = ", ".join(map(str, sorted(set(one["threads"]))))
                cases.append(Case(name, _DEFAULT, ratio.median, f"on {threads} threads"))
                ratios.append(measured_ratio(f"{name}: seconds over the default's", ratio, len(mine)))
        times = f"{1e3 * np.median(default[1]):.2f}, {1e3 * np.median(default[2]) / tokens:.3f}"
        rows.append((name, threads, *cells, times, f"{np.median(one['decision_seconds']):.1f}"))
    columns = ("decoder", "threads", *_PHASES, "default's ms: prompt, token", "decision s")
    remarks, claims = list(failures), []
    if worst:
        claims.append(Claim("whole answer over the default, largest", 1 / _NEVER_BELOW, max(worst)))
        remarks.append(f"certainly faster than the default: {'; '.join(wins) or 'nowhere'}")
    table = Table("Seconds over those of OpenVINO's default", columns, rows)
    return Result(
        "A prompt and then one token at a time",
        (table,),
        tuple(ratios),
        tuple(cases),
        tuple(remarks),
        {"found": dict(found)},
        tuple(claims),
    )
