"""Does HETERO run what the simulator calls finite, and refuse what it calls infinite? Random placements tell.

For each model, random placements of its co-location groups are compiled and run twice, and every one falls
into one class of :data:`CLASSES`. Plugins may crash, so models are checked in child processes that report
line by line; a placement during which the child died is one that fails.

    python tools/legality.py --networks bert llama:dynamic --placements 10
    python tools/legality.py --random 300 --seed 1000 --placements 2
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import openvino as ov
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests")]

from model_checks import relative_error  # noqa: E402
from ov_autoplace.errors import PlacementError  # noqa: E402
from ov_autoplace.graph import coarsen, extract, input_ranges, make_names_unique  # noqa: E402
from ov_autoplace.graph.folding import fold_static_shapes  # noqa: E402
from ov_autoplace.placement.annotation import set_affinities  # noqa: E402
from ov_autoplace.placement.bounded import open_bounded_crossings  # noqa: E402
from ov_autoplace.placement.legality import broken_bonds  # noqa: E402

__all__ = ["CLASSES", "Verdict", "check", "group_placements", "main"]

CLASSES = ("runs", "refused", "refused but runs", "fails", "wrong", "no groups", "not run by the CPU")
"""``runs``: predicted and right. ``refused``: predicted to fail, and fails. The next three contradict the
simulator. The last two are models that say nothing: all in one group, or refused by the CPU alone."""

DEVICES = ("XCPU", "CPU")
TOLERANCE = 1e-3
_SECONDS = 900.0


class Verdict(NamedTuple):
    """What became of one placement.

    Attributes:
        model: Name of the model.
        placement: Number of the placement.
        outcome: One of :data:`CLASSES`.
        reason: What HETERO or the simulator says.
    """

    model: str
    placement: int
    outcome: str
    reason: str


def check(name: str, model: Path, shapes: dict[str, list[int]], placements: int, seed: int) -> list[Verdict]:
    """Classify random placements of the groups of one model, in child processes.

    Args:
        name: For the report.
        model: An IR.
        shapes: Of the inputs that the model leaves open.
        placements: How many.
        seed: Of the placements and the input data.
    """
    verdicts: list[Verdict] = []
    while len(verdicts) < placements:
        request = [str(model), json.dumps(shapes), str(seed), str(len(verdicts)), str(placements)]
        command = [sys.executable, __file__, "--worker", *request]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
            output, end = done.stdout, f"the process ended with {done.returncode}"
            if done.returncode > 0:
                end += f": {done.stderr.strip().splitlines()[-1:]}"
        except subprocess.TimeoutExpired as cause:
            output, end = (cause.stdout or b"").decode(), f"no answer in {_SECONDS:.0f} s"
        lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
        verdicts += [
            Verdict(name, len(verdicts) + i, **v) for i, v in enumerate(x for x in lines if "outcome" in x)
        ]
        if verdicts and verdicts[-1].outcome in CLASSES[5:]:
            break
        if len(verdicts) < placements:
            refused = bool(lines) and lines[-1].get("predicted") == "refused"
            verdicts.append(Verdict(name, len(verdicts), "refused" if refused else "fails", end))
    return verdicts


def group_placements(groups: int, seed: int) -> Iterator[NDArray[np.int32]]:
    """Device of each group, ``int32[G]``: by turns runs of groups, single groups moved, and pure chance."""
    random = np.random.default_rng(seed)
    while True:
        cuts = np.sort(random.integers(0, groups, int(random.integers(1, 8))))
        yield (np.searchsorted(cuts, np.arange(groups), side="right") % 2).astype(np.int32)
        moved = random.random(groups) < 3 / groups
        yield moved.astype(np.int32)
        yield random.integers(0, 2, groups).astype(np.int32)


def _work(path: str, shapes: dict[str, list[int]], seed: int, first: int, last: int) -> None:
    """The child: one line with the prediction and one with the verdict per placement."""
    core = _core()
    model = core.read_model(path)
    make_names_unique(model)
    try:
        inputs = _inputs(model, shapes, seed)
        expected = _two_runs(core.compile_model(model, "CPU"), inputs)
    except RuntimeError as cause:
        return _say(outcome=CLASSES[6], reason=_last_line(cause))
    placed = model.clone()
    fold_static_shapes(placed)
    graph = extract(placed, shapes)
    choices = [coarsen(graph), coarsen(graph, light_ops=False)]
    if max(map(len, choices)) < 2:
        return _say(outcome=CLASSES[5], reason=f"{len(graph)} ops, one group")
    streams = [group_placements(len(coarse), seed) for coarse in choices]
    for number in range(last):
        kind = number % 2
        on = next(streams[kind])[choices[kind].group_of]
        if number < first:
            continue
        bonds = broken_bonds(graph, on)
        _say(predicted="refused" if bonds else "runs")
        outcome, reason = _run(core, placed, on, inputs, expected)
        if bonds:
            outcome = "refused" if outcome != "runs" else "refused but runs"
            reason = bonds[0].reason
        _say(outcome=outcome, reason=reason)
    return None


def _run(
    core: ov.Core, model: ov.Model, on: NDArray[np.int32], inputs: list[Any], expected: list[Any]
) -> tuple[str, str]:
    """``runs``, ``fails`` or ``wrong``, and why."""
    clone = model.clone()
    names = [op.get_friendly_name() for op in clone.get_ordered_ops()]
    device_of = {name: DEVICES[device] for name, device in zip(names, on.tolist(), strict=True)}
    try:
        set_affinities(clone, open_bounded_crossings(clone, device_of))
    except PlacementError as cause:
        return "refused", str(cause)
    try:
        found = _two_runs(core.compile_model(clone, "HETERO:" + ",".join(DEVICES)), inputs)
    except RuntimeError as cause:
        return "fails", _last_line(cause)
    error = relative_error(*([np.nan_to_num(x) for x in y] for y in (found, expected)))
    return ("runs", "") if error <= TOLERANCE else ("wrong", f"error {error:.1e}")


def _core() -> ov.Core:
    """Two equal devices in f32, so that only a broken cut can change an output."""
    core = ov.Core()
    core.register_plugin(f"{ov.__path__[0]}/libs/libopenvino_intel_cpu_plugin.so", DEVICES[0])
    for device in DEVICES:
        core.set_property(device, {"INFERENCE_PRECISION_HINT": "f32"})
    return core


def _inputs(model: ov.Model, shapes: dict[str, list[int]], seed: int) -> list[NDArray[Any]]:
    random = np.random.default_rng(seed)
    bounds = input_ranges(model)
    inputs: list[NDArray[Any]] = []
    for port in model.inputs:
        name = port.get_node().get_friendly_name()
        partial = port.get_partial_shape()
        shape = shapes.get(name) or [d.get_length() if d.is_static else 3 for d in partial]
        element = port.get_element_type()
        if element.is_real():
            inputs.append(random.standard_normal(shape).astype(element.to_dtype()))
        else:
            inputs.append(random.integers(0, bounds.get(name, 2), shape).astype(element.to_dtype()))
    return inputs


def _two_runs(compiled: ov.CompiledModel, inputs: list[NDArray[Any]]) -> list[NDArray[Any]]:
    """Two runs of one request, so that state counts."""
    request = compiled.create_infer_request()
    return [request.infer(inputs)[port].copy() for _ in range(2) for port in compiled.outputs]


def _last_line(cause: BaseException) -> str:
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    return (lines[-1] if lines else type(cause).__name__)[:300]


def _say(**fields: str) -> None:
    print(json.dumps(fields), flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; 0 when no placement contradicts the simulator."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--networks", nargs="*", metavar="NAME", help="transformers networks; all when no name is given"
    )
    parser.add_argument("--random", type=int, default=0, metavar="COUNT", help="random graphs")
    parser.add_argument(
        "--models", nargs="*", default=[], metavar="XML", help="IR files, with shapes in a .json beside"
    )
    parser.add_argument("--placements", type=int, default=10, help="per model")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--worker", nargs=5, help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.worker:
        path, shapes, seed, first, last = chosen.worker
        _work(path, json.loads(shapes), int(seed), int(first), int(last))
        return 0
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for name, path, shapes in _models(chosen, Path(folder)):
            verdicts = check(name, path, shapes, chosen.placements, chosen.seed)
            found = Counter(verdict.outcome for verdict in verdicts)
            counts += found
            if len(found) > 1 or "runs" not in found:
                print(f"{name}: " + ", ".join(f"{n} {outcome}" for outcome, n in found.items()), flush=True)
            for verdict in verdicts:
                if verdict.outcome not in ("runs", "refused"):
                    print(f"  {verdict.placement}: {verdict.outcome}: {verdict.reason}", flush=True)
    print("\n".join(f"{counts[outcome]:6} {outcome}" for outcome in CLASSES))
    return int(any(counts[outcome] for outcome in CLASSES[2:5]))


def _models(chosen: argparse.Namespace, folder: Path) -> Iterator[tuple[str, Path, dict[str, list[int]]]]:
    """Name, IR and shapes of every model asked for."""
    for file in map(Path, chosen.models):
        beside = file.with_suffix(".json")
        yield file.stem, file, json.loads(beside.read_text()) if beside.exists() else {}
    if chosen.networks is not None:
        import transformers_networks

        for name in chosen.networks or transformers_networks.NAMES:
            network = transformers_networks.build(name)
            path = folder / f"{name.replace(':', '_')}.xml"
            ov.save_model(network.model, path, compress_to_fp16=False)
            yield name, path, network.shapes
    if chosen.random:
        from random_dynamic_models import random_dynamic_model

        for seed in range(chosen.seed, chosen.seed + chosen.random):
            path = folder / "random.xml"
            made = random_dynamic_model(seed)
            ov.save_model(made.model, path, compress_to_fp16=False)
            yield f"random {seed}", path, made.shapes


if __name__ == "__main__":
    sys.exit(main())
