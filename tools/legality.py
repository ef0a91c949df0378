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

import openvino as ov

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests")]

from legality_worker import NO_GROUPS, NOT_RUN  # noqa: E402

__all__ = ["CLASSES", "FAULTS", "Checker", "Verdict", "main"]

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
            command = [sys.executable, str(Path(__file__).with_name("legality_worker.py"))]
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
    chosen = parser.parse_args(arguments)
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
