"""Fuzz readers: coverage-guided with atheris, a process per reader, and a table of counts at the end.

    python tools/fuzz/run.py --inputs 1000000 --output build/fuzz

A reader may accept an input or raise what it says it raises. Anything else is a fault: another exception, a
crash of the process, an input that takes longer than 10 seconds, more than 2 GiB of memory. Faults are kept
as files in ``OUTPUT/READER/faults``; ``--again FILE`` runs one of them, with the traceback. What took long or
ended the process without a word is run again first: a machine that was paused is no fault of the reader.
Runs into the same folder go on with its corpus: give each its own seed.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import math
import mmap
import random
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

_SECONDS_PER_INPUT, _MEGABYTES, _LONGEST = 10, 2048, 16384
_START_SECONDS, _POLL_SECONDS = 300, 0.25
_NEVER_SECONDS = 10**8  # :func:`_wait` looks after the time
_TRIES = 20


@dataclass(frozen=True)
class _Outcome:
    """What fuzzing a reader found: inputs by what became of them, the corpus at the end, files of faults."""

    reader: str
    counts: tuple[int, int, int]
    seconds: float
    corpus: int
    faults: tuple[str, ...]

    def __str__(self) -> str:
        accepted, refused, skipped = self.counts
        return (
            f"{self.reader:18} {sum(self.counts):8} inputs, {accepted:7} accepted, {refused:7} refused, "
            f"{skipped:6} skipped, {self.seconds:6.0f} s, {self.corpus:4} in the corpus, "
            f"{len(self.faults)} faults"
        )


class _Board:
    """What a worker tells through a file that both map: its counts, and the input that it reads.

    Args:
        path: The file.
        fresh: Whether to begin with zeros.
    """

    _HEAD = struct.Struct("qqqq")  # accepted, refused, skipped, bytes of the input

    def __init__(self, path: Path, fresh: bool = False) -> None:
        size = self._HEAD.size + _LONGEST
        if fresh:
            path.write_bytes(bytes(size))
        with path.open("r+b") as file:
            self._shared = mmap.mmap(file.fileno(), size)

    @property
    def counts(self) -> tuple[int, int, int]:
        """Inputs accepted, refused, and skipped because nothing to read could be made of them."""
        return self._HEAD.unpack_from(self._shared)[:3]

    @property
    def data(self) -> bytes:
        """The input read last."""
        return self._shared[self._HEAD.size :][: self._HEAD.unpack_from(self._shared)[3]]

    def begin(self, data: bytes) -> None:
        """Show an input before it is read."""
        data = data[:_LONGEST]
        self._shared[self._HEAD.size : self._HEAD.size + len(data)] = data
        self._HEAD.pack_into(self._shared, 0, *self.counts, len(data))

    def count(self, which: int) -> None:
        """Count it: 0 accepted, 1 refused, 2 skipped."""
        head = list(self._HEAD.unpack_from(self._shared))
        head[which] += 1
        self._HEAD.pack_into(self._shared, 0, *head)


def main() -> int:
    """Fuzz the readers that were asked for; 1 when there are faults."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--inputs", type=int, default=100_000, help="of all readers together")
    parser.add_argument("--seconds", type=float, default=0, help="at most about so long, for all readers")
    parser.add_argument("--jobs", type=int, default=1, help="readers fuzzed at the same time")
    parser.add_argument("--readers", default="", help="names, with commas; all when empty")
    parser.add_argument("--output", type=Path, default=Path("build/fuzz"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--again", type=Path, help="run one input of --readers NAME")
    worker = ("READER", "BOARD", "SCRATCH", "UNTIL")
    parser.add_argument("--worker", nargs=4, metavar=worker, help=argparse.SUPPRESS)
    known, rest = parser.parse_known_args()
    if known.worker:
        _work(*known.worker, rest)
    if rest:
        parser.error(f"unknown arguments {rest}")
    if not known.again and find_spec("atheris") is None:
        parser.error("atheris is not installed; it has wheels for Python 3.11 to 3.13 (pip install atheris)")
    return _again(known) if known.again else _fuzz_all(known)


def _readers(names: str) -> list[Any]:
    from fuzz.readers import READERS

    wanted = [name for name in names.split(",") if name]
    unknown = set(wanted) - {reader.name for reader in READERS}
    if unknown:
        raise SystemExit(
            f"there is no reader {sorted(unknown)[0]}; there are {', '.join(r.name for r in READERS)}"
        )
    return [reader for reader in READERS if not wanted or reader.name in wanted]


def _fuzz_all(options: argparse.Namespace) -> int:
    readers = _readers(options.readers)
    shares = sum(reader.share for reader in readers)
    end = time.time() + options.seconds if options.seconds else math.inf
    left = len(readers)

    def fuzz(reader: Any) -> _Outcome:
        nonlocal left
        seconds = (end - time.time()) * min(options.jobs, left) / left
        left -= 1
        inputs = max(1, round(options.inputs * reader.share / shares))
        outcome = _fuzz(reader, inputs, time.time() + seconds, options.output.resolve(), options.seed)
        print(outcome, flush=True)
        return outcome

    with ThreadPoolExecutor(options.jobs) as pool:
        found = list(pool.map(fuzz, readers))
    faults = [fault for outcome in found for fault in outcome.faults]
    total = sum(sum(outcome.counts) for outcome in found)
    print(f"{total} inputs, {len(faults)} faults", *faults, sep="\n")
    return int(bool(faults))


def _fuzz(reader: Any, inputs: int, until: float, output: Path, seed: int) -> _Outcome:
    """One reader in processes of its own: a fault ends one, and the next goes on with what is left."""
    corpus, faults = output / reader.name / "corpus", output / reader.name / "faults"
    for folder in (corpus, faults):
        folder.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(reader.seeds()):
        (corpus / f"seed{number}").write_bytes(data)
    known = set(faults.iterdir())
    path = output / reader.name / "board"
    board = _Board(path, fresh=True)
    started, tries = time.time(), 0
    found: list[str] = []
    while sum(board.counts) < inputs and tries < _TRIES and (not tries or time.time() < until):
        tries += 1
        log = output / reader.name / f"log{tries}"
        with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as scratch:
            command = [
                *(sys.executable, __file__, "--worker", reader.name, str(path), scratch, str(until)),
                *(f"-runs={inputs - sum(board.counts)}", f"-seed={seed + tries}", f"-max_len={_LONGEST}"),
                *(f"-timeout={_NEVER_SECONDS}", f"-rss_limit_mb={_MEGABYTES}"),
                *(f"-artifact_prefix={faults}/", str(corpus)),
            ]
            status = _run(command, log, board)
        new = set(faults.iterdir()) - known
        if status and not new and sum(board.counts):  # it was killed, or ended itself
            new = {faults / f"end-{hashlib.sha1(board.data).hexdigest()}"}
            next(iter(new)).write_bytes(board.data)
        elif status and not new:
            found.append(f"{log} (the process left with {status} before its first input)")
            break
        known |= new
        found += sorted(str(fault) for fault in new if _is_fault(reader, fault))
        if not status:
            break
    elapsed = time.time() - started
    return _Outcome(reader.name, board.counts, elapsed, len(list(corpus.iterdir())), tuple(found))


def _run(command: list[str], log: Path, board: _Board) -> int:
    """Run a worker until it ends, and end it when it reads nothing for long: its exit status."""
    with log.open("w", errors="replace") as file:
        process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT)
        return _wait(process, lambda: sum(board.counts))


def _wait(
    process: subprocess.Popen[Any],
    progress: Callable[[], int],
    start_seconds: float = _START_SECONDS,
    seconds_per_input: float = _SECONDS_PER_INPUT,
    poll_seconds: float = _POLL_SECONDS,
) -> int:
    """Wait for a process, and kill it when it makes no progress for long: its exit status.

    This is done from outside, because libFuzzer cannot while a process starts, ends or holds back its
    signals. Polls are counted and not seconds, which pass too while the whole machine is paused: libFuzzer
    and atheris then take for a hang whatever is read at that moment.
    """
    before, still, limit = progress(), 0.0, start_seconds
    while True:
        try:
            return process.wait(poll_seconds)
        except subprocess.TimeoutExpired:
            still += poll_seconds
        if progress() != before:
            before, still, limit = progress(), 0.0, seconds_per_input
        if still > limit:
            process.kill()


def _is_fault(reader: Any, artifact: Path) -> bool:
    """Whether what was kept is one: what took long, or ended without a word, has to do so again."""
    if not artifact.name.startswith(("slow-unit-", "end-")):
        return True
    command = [sys.executable, __file__, "--readers", reader.name, "--again", str(artifact)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    status = _wait(process, lambda: 0)
    if not status:
        artifact.unlink()
    return bool(status)


def _work(name: str, path: str, scratch: str, until: str, arguments: list[str]) -> None:
    """Read inputs until libFuzzer ends the process."""
    import atheris

    (reader,) = _readers(name)
    seeds = tuple(reader.seeds())
    folder = Path(scratch)
    for seed in seeds:
        reader.read(seed, folder)  # which imports what is imported late
    # atheris's import hook cannot see into an editable installation; functions can be rewritten later too.
    for function in gc.get_objects():
        if isinstance(function, FunctionType) and str(function.__module__).startswith("ov_autoplace"):
            atheris.instrument_func(function)
    board = _Board(Path(path))
    from fuzz.mutation import mutate

    def test(data: bytes) -> None:
        board.begin(data)
        try:
            read = reader.read(data, folder)
        except reader.errors:
            board.count(1)
        else:
            board.count(2 if read is False else 0)

    def custom(data: bytes, limit: int, seed: int) -> bytes:
        if random.Random(seed).random() < 0.1:
            return atheris.Mutate(data, limit)
        return mutate(data, limit, seed, seeds)

    import logging

    logging.getLogger("ov_autoplace").setLevel(logging.CRITICAL)
    if math.isfinite(float(until)):
        arguments = [*arguments, f"-max_total_time={max(1, round(float(until) - time.time()))}"]
    atheris.Setup([sys.argv[0], *arguments], test, custom_mutator=custom)
    atheris.Fuzz()


def _again(options: argparse.Namespace) -> int:
    """Read one input again: 1 when that takes too long."""
    (reader,) = _readers(options.readers)
    with tempfile.TemporaryDirectory() as folder:
        reader.read(next(iter(reader.seeds())), Path(folder))  # which imports what is imported late
        started = time.process_time()
        try:
            reader.read(options.again.read_bytes(), Path(folder))
        except reader.errors as error:
            print(f"{type(error).__name__}: {error}")
    seconds = time.process_time() - started
    if seconds > _SECONDS_PER_INPUT:
        print(f"took {seconds:.0f} s")
    return int(seconds > _SECONDS_PER_INPUT)


if __name__ == "__main__":
    raise SystemExit(main())
