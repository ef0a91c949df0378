"""What the start of a program costs: first and later compiles on ``AUTOPLACE:CPU``, decided now and behind.

Each program is a process of its own with a cache folder of its own. It compiles a trivial model first, which
pays for loading the plugin as it does without AUTOPLACE. Times are those of ``compile_model``, modules of the
package that are loaded for the first time among them.

*First*: each network by itself: plain ``CPU`` and ``AUTO:CPU``; behind, first and again once the decision is
there; now, first and again. *Many*: networks one after the other in one program. *Beside*: what inferences of
another network take while a decision is made behind, an idle gap before each of them, over what they take
before and afterwards.
"""

from __future__ import annotations

import tempfile
import time
from typing import Any

import numpy as np
import openvino as ov
from openvino import opset13 as opset

from harness.process import Pieces, in_child
from harness.result import Claim, Result, Table
from problems.models import MODELS

_MODELS = (
    *(f"zoo/{name}" for name in ("mobilenet_v2", "two_tower", "bert_base", "gnmt", "unet", "wavenet")),
    *(f"light/{name}" for name in ("squeezenet", "shufflenet", "inception_v1", "bvlc_alexnet")),
    *(f"tiny/{name}" for name in ("resnet8", "keyword_spotting", "anomaly_detection", "wide_and_deep")),
    *(f"transformers/{name}" for name in ("bert", "vit", "resnet", "segformer", "gpt2", "yolos")),
)
_QUICK = ("zoo/mobilenet_v2",)
_TIMEOUT, _DECIDED_SECONDS = 120.0, 60.0
# Of inferences beside a decision; how many before it, and for how long beside it.
_GAP_SECONDS, _UNDISTURBED, _BESIDE_SECONDS = 3e-3, 600, 10.0
_COLUMNS = ("CPU", "AUTO", "behind", "behind again", "now", "now again")


def run(quick: bool, seed: int, models: tuple[str, ...] = ()) -> Result:
    """All three.

    Args:
        quick: One network, three in one program.
        seed: Not used: nothing here is random.
        models: Parts of names of the networks that are compiled by themselves.
    """
    every = [n for n in _MODELS if n in MODELS]
    names = [n for n in every if any(p in n for p in models)] if models else list(_QUICK) if quick else every
    pieces = Pieces(_TIMEOUT, call=_in_program)
    found = {name: one for name in names if (one := _starts(pieces, [name])) is not None}
    small = [n for n in MODELS if n.startswith(("tiny/", "zoo/"))]
    small = small[:3] if quick else small
    many = _starts(pieces, small)
    with tempfile.TemporaryDirectory(prefix="ov-autoplace-bench-") as folder:
        beside = pieces("beside", inferences_beside, folder=folder)
    columns = ("network", *(f"{what} s" for what in _COLUMNS))
    rows = [(name, *(f"{one[what]:.2f}" for what in _COLUMNS)) for name, one in found.items()]
    tables = [Table("The first and later compiles, each network by itself", columns, rows, published=False)]
    claims = []
    if found:
        over = {what: [one[what] - one["CPU"] for one in found.values()] for what in _COLUMNS}
        claims.append(Claim("behind over CPU, s, median", 0.1, float(np.median(over["behind"]))))
        claims.append(Claim("behind again over CPU, s, median", 0.05, float(np.median(over["behind again"]))))
        claims.append(Claim("now, s, median", 1.2, float(np.median([one["now"] for one in found.values()]))))
        claims.append(Claim("now, s, longest", 2.5, max(one["now"] for one in found.values())))
    if many is not None:
        title = f"{len(small)} networks in one program"
        row = (title, *(f"{many[what]:.2f}" for what in _COLUMNS))
        tables.append(Table("All of them together", columns, [row]))
        claims.append(Claim(f"{title}, behind, s", 1.0, many["behind"]))
    if beside is not None:
        claims.append(Claim("inferences beside a decision behind, median over before", 1.03, beside[0]))
        claims.append(Claim("the same, 99th percentile", 1.3, beside[1]))
    data = {"found": found, "many": many, "beside": beside}
    return Result(
        "Starts of programs",
        tuple(tables),
        remarks=tuple(pieces.remarks),
        data=data,
        claims=tuple(claims),
    )


def _in_program(function: Any, arguments: dict[str, Any], timeout: float | None) -> Any:
    """:func:`in_child`, with the folder among the arguments as the user's cache folder."""
    variables = {"AUTOPLACE_CACHE": "YES", "XDG_CACHE_HOME": str(arguments["folder"])}
    return in_child(function, arguments, variables, timeout)


def _starts(pieces: Pieces, names: list[str]) -> dict[str, float] | None:
    """Seconds of all compiles together, by how they were asked for; ``None`` where one of them failed."""
    found: dict[str, float] = {}
    title = ", ".join(names[:2])
    with tempfile.TemporaryDirectory(prefix="ov-autoplace-bench-") as behind:
        for what, device, decide, folder in (
            ("CPU", "CPU", "", behind),
            ("AUTO", "AUTO:CPU", "", behind),
            ("behind", "AUTOPLACE:CPU", "BEHIND", behind),
            ("behind again", "AUTOPLACE:CPU", "BEHIND", behind),
            ("now", "AUTOPLACE:CPU", "NOW", f"{behind}/now"),
            ("now again", "AUTOPLACE:CPU", "NOW", f"{behind}/now"),
        ):
            seconds = pieces(
                f"{title}, {what}", start, names=names, device=device, decide=decide, folder=folder
            )
            if seconds is None:
                return None
            found[what] = float(seconds)
    return found


def start(names: list[str], device: str, decide: str, folder: str) -> float:
    """Compile networks in this process; the seconds that it took.

    Args:
        names: Of them.
        device: For which.
        decide: When AUTOPLACE decides; empty for other devices. Who decides behind is waited for.
        folder: The user's cache folder.
    """
    import ov_autoplace

    core = ov.Core()
    built = [MODELS[name]() for name in names]
    _load_plugin(core)
    begin = time.perf_counter()
    compiled = [core.compile_model(m, device, {"AUTOPLACE_DECIDE": decide} if decide else {}) for m in built]
    seconds = time.perf_counter() - begin
    del compiled
    ov_autoplace.wait(_DECIDED_SECONDS)
    return seconds


def inferences_beside(folder: str) -> tuple[float, float]:
    """Median and 99th percentile of inferences while a decision is made behind, over those at other times."""
    import ov_autoplace

    core = ov.Core()
    request = core.compile_model(MODELS["zoo/unet"](), "CPU").create_infer_request()
    inputs = [np.zeros(port.shape, port.element_type.to_dtype()) for port in request.model_inputs]
    for port, value in zip(request.model_inputs, inputs, strict=True):
        request.set_tensor(port, ov.Tensor(value))

    def timed() -> float:
        time.sleep(_GAP_SECONDS)
        begin = time.perf_counter()
        request.infer()
        return time.perf_counter() - begin

    before = [timed() for _ in range(_UNDISTURBED)]
    for name in ("zoo/mobilenet_v2", "zoo/gnmt"):
        core.compile_model(MODELS[name](), "AUTOPLACE:CPU", {"AUTOPLACE_DECIDE": "BEHIND"})
    end = time.perf_counter() + _BESIDE_SECONDS
    during = []
    while not ov_autoplace.wait(0) and time.perf_counter() < end:
        during.append(timed())
    ov_autoplace.wait(_DECIDED_SECONDS)
    alone = [*before, *(timed() for _ in range(_UNDISTURBED))]
    quantiles = [np.quantile(samples, (0.5, 0.99)) for samples in (alone, during or alone)]
    median, tail = (quantiles[1] / quantiles[0]).tolist()
    return median, tail


def _load_plugin(core: ov.Core) -> None:
    x = opset.parameter([1, 8], np.float32)
    core.compile_model(ov.Model([opset.relu(x)], [x]), "CPU")
