"""Does HETERO run what the simulator calls finite, and refuse what it calls infinite? Random placements tell.

For each model, random placements of its co-location groups are annotated, compiled and run twice, and every
one falls into one class of :data:`CLASSES`. Plugins may crash, so a child process does the work and reports
line by line; a placement during which it died or gave no answer is one that fails.

    python tools/legality.py --networks bert llama:dynamic --placements 10
    python tools/legality.py --random 300 --seed 1000 --placements 2
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Timer
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
from ov_autoplace.placement.annotation import annotate, set_affinities  # noqa: E402
from ov_autoplace.placement.bounded import open_bounded_crossings  # noqa: E402
from ov_autoplace.placement.fitting import count_subgraphs  # noqa: E402
from ov_autoplace.placement.legality import broken_bonds  # noqa: E402

__all__ = ["CLASSES", "FAULTS", "Checker", "Verdict", "group_placements", "main"]

NO_GROUPS, NOT_RUN = "no groups", "not run by the CPU"
CLASSES = (
    "runs",
    "refused",
    "refused but runs",
    "refused late",
    "other count",
    "fails",
    "wrong",
    NO_GROUPS,
    NOT_RUN,
)
"""``runs``: predicted and right. ``refused``: predicted to fail, and fails. The last two are models that say
nothing: all in one group, or refused by the CPU alone. The others are :data:`FAULTS`."""

FAULTS = CLASSES[2:7]
"""``refused late``: the simulator calls it finite and ``annotate`` refuses it. ``other count``:
``count_subgraphs`` is not HETERO's own number of submodels. ``wrong``: another output than the CPU's."""

DEVICES = ("XCPU", "CPU")
TOLERANCE = 1e-3
_SECONDS = 900.0  # that a placement may take: half a minute of work, beside whatever else the machine does
_MODELS_PER_CHILD = 50


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


class Checker:
    """Classifies random placements of the groups of models, in a child process that is started as needed."""

    def __init__(self, seconds: float = _SECONDS) -> None:
        """Wait at most ``seconds`` for a placement."""
        self._seconds = seconds
        self._child: subprocess.Popen[str] | None = None
        self._models = 0

    def __enter__(self) -> Checker:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def check(
        self, name: str, model: Path, shapes: dict[str, list[int]], placements: int, seed: int
    ) -> list[Verdict]:
        """One verdict per placement, or a single one about the model.

        Args:
            name: For the report.
            model: An IR.
            shapes: Of the inputs that the model leaves open.
            placements: How many.
            seed: Of the placements and the input data.
        """
        verdicts: list[Verdict] = []
        while len(verdicts) < placements:
            predicted = ""
            for line in self._lines([str(model), shapes, seed, len(verdicts), placements]):
                predicted = line.get("predicted", "")
                if "outcome" in line:
                    verdicts.append(Verdict(name, len(verdicts), line["outcome"], line["reason"]))
            if verdicts and verdicts[-1].outcome in (NO_GROUPS, NOT_RUN):
                break
            if len(verdicts) < placements:
                outcome = "refused" if predicted == "refused" else "fails"
                verdicts.append(Verdict(name, len(verdicts), outcome, self._stop()))
        self._models += 1
        if self._models % _MODELS_PER_CHILD == 0:
            self._stop()  # plugins keep what they compiled
        return verdicts

    def _lines(self, request: list[Any]) -> Iterator[dict[str, str]]:
        """What the child says to a request, until it has done it, dies, or says nothing for too long."""
        if self._child is None:
            command = [sys.executable, __file__, "--worker"]
            self._child = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
        child = self._child
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            child.stdin.write(json.dumps(request) + "\n")
            child.stdin.flush()
        except BrokenPipeError:
            return
        while True:
            clock = Timer(self._seconds, child.kill)
            clock.start()
            line = child.stdout.readline()
            clock.cancel()
            if not line or line == "done\n":
                return
            if line.startswith("{"):
                yield json.loads(line)

    def _stop(self) -> str:
        """End the child, and tell how it ended."""
        child, self._child = self._child, None
        if child is None:
            return ""
        assert child.stdin is not None
        child.stdin.close()
        code = child.wait()
        if code == -signal.SIGKILL:
            return f"killed, or no answer in {self._seconds:.0f} s"
        return f"the process ended with {code}"


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
        return _say(outcome=NOT_RUN, reason=_last_line(cause))
    placed = model.clone()
    fold_static_shapes(placed)
    graph = extract(placed, shapes)
    choices = [coarsen(graph), coarsen(graph, light_ops=False)]
    if max(map(len, choices)) < 2:
        return _say(outcome=NO_GROUPS, reason=f"{len(graph)} ops, one group")
    streams = [group_placements(len(coarse), seed) for coarse in choices]
    for number in range(last):
        kind = number % 2
        on = next(streams[kind])[choices[kind].group_of]
        if number < first:
            continue
        bonds = broken_bonds(graph, on)
        _say(predicted="refused" if bonds else "runs")
        device_of = {name: DEVICES[d] for name, d in zip(graph.names, on.tolist(), strict=True)}
        if bonds:
            runs = _run(core, _forced(placed, device_of), inputs, expected)[0] in ("runs", "wrong")
            _say(outcome="refused but runs" if runs else "refused", reason=bonds[0].reason)
            continue
        try:
            count = count_subgraphs(placed, device_of)
            annotated = placed.clone()
            annotate(annotated, device_of)
        except PlacementError as cause:
            _say(outcome="refused late", reason=str(cause))
            continue
        outcome, reason = _run(core, annotated, inputs, expected, count)
        _say(outcome=outcome, reason=reason)
    return None


def _forced(model: ov.Model, device_of: dict[str, str]) -> ov.Model | None:
    """A clone with affinities that ``annotate`` refuses; ``None`` where even that cannot be done."""
    clone = model.clone()
    try:
        set_affinities(clone, open_bounded_crossings(clone, device_of))
    except PlacementError:
        return None
    return clone


def _run(
    core: ov.Core,
    model: ov.Model | None,
    inputs: list[Any],
    expected: list[Any],
    count: int | None = None,
) -> tuple[str, str]:
    """``runs``, ``fails``, ``wrong`` or ``other count``, and why."""
    if model is None:
        return "fails", ""
    try:
        compiled = core.compile_model(model, "HETERO:" + ",".join(DEVICES))
        found = _two_runs(compiled, inputs)
    except RuntimeError as cause:
        return "fails", _last_line(cause)
    error = relative_error(*([np.nan_to_num(x) for x in y] for y in (found, expected)))
    if error > TOLERANCE:
        return "wrong", f"error {error:.1e}"
    if count is not None and len(set(compiled.get_property("EXECUTION_DEVICES"))) > 1:
        submodels = compiled.get_property("HETERO_NUMBER_OF_SUBMODELS")
        if submodels != count:
            return "other count", f"{submodels} submodels, predicted {count}"
    return "runs", ""


def _core() -> ov.Core:
    """Two equal devices that compute in f32, so that only a broken cut can change an output.

    On compressed weights the plugin would otherwise round activations to eight bits, not alike in every cut.
    """
    core = ov.Core()
    core.register_plugin(f"{ov.__path__[0]}/libs/libopenvino_intel_cpu_plugin.so", DEVICES[0])
    for device in DEVICES:
        core.set_property(device, {"INFERENCE_PRECISION_HINT": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0})
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
    """The command line; 0 when no placement contradicts the simulator. Ctrl-C ends it with what it has."""
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
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.worker:
        for request in sys.stdin:
            _work(*json.loads(request))
            print("done", flush=True)
        return 0
    counts: Counter[str] = Counter()
    models = 0
    with suppress(KeyboardInterrupt), tempfile.TemporaryDirectory() as folder, Checker() as checker:
        for name, path, shapes in _models(chosen, Path(folder)):
            verdicts = checker.check(name, path, shapes, chosen.placements, chosen.seed)
            found = Counter(verdict.outcome for verdict in verdicts)
            counts += found
            models += 1
            if len(found) > 1 or "runs" not in found:
                print(f"{name}: " + ", ".join(f"{n} {outcome}" for outcome, n in found.items()), flush=True)
            for verdict in verdicts:
                if verdict.outcome in FAULTS:
                    print(f"  {verdict.placement}: {verdict.outcome}: {verdict.reason}", flush=True)
    print(f"{models} models, {counts.total()} verdicts")
    print("\n".join(f"{counts[outcome]:6} {outcome}" for outcome in CLASSES))
    return int(any(counts[outcome] for outcome in FAULTS))


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
