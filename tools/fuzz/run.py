"""Fuzz readers: coverage-guided with atheris, a process per reader, and a table of counts at the end.

    python tools/fuzz/run.py --inputs 1000000 --output build/fuzz

A reader may accept an input or raise what it says it raises. Anything else is a fault: another exception, a
crash of the process, an input that takes longer than 10 seconds, more than 2 GiB of memory. Faults are kept
as files in ``OUTPUT/READER/faults``; ``--again FILE`` runs one of them, with the traceback.
"""

from __future__ import annotations

import argparse
import gc
import json
import mmap
import os
import random
import re
import struct
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FunctionType
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

_SECONDS_PER_INPUT, _MEGABYTES, _LONGEST = 10, 2048, 16384
_COUNTS = struct.Struct("qq")  # accepted, refused


@dataclass(frozen=True)
class Outcome:
    """What fuzzing one reader found.

    Attributes:
        reader: Its name.
        inputs: How many it read.
        accepted, refused: How many it took, and how many it refused as it says.
        seconds: Wall-clock time.
        corpus: Inputs that reached code which none before them had reached.
        faults: Files that it should have taken or refused.
    """

    reader: str
    inputs: int
    accepted: int
    refused: int
    seconds: float
    corpus: int
    faults: tuple[str, ...]


def main() -> int:
    """Fuzz the readers that were asked for; 1 when there are faults."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--inputs", type=int, default=100_000, help="of all readers together")
    parser.add_argument("--seconds", type=float, default=0, help="at most so long, shared by the readers")
    parser.add_argument("--readers", default="", help="names, with commas; all when empty")
    parser.add_argument("--output", type=Path, default=Path("build/fuzz"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--again", type=Path, help="run one input of --readers NAME")
    parser.add_argument("--worker", nargs=3, metavar=("READER", "COUNTS", "SCRATCH"), help=argparse.SUPPRESS)
    known, rest = parser.parse_known_args()
    if known.worker:
        _work(*known.worker, rest)
    if rest:
        parser.error(f"unknown arguments {rest}")
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
    outcomes = []
    for reader in readers:
        inputs = max(1, round(options.inputs * reader.share / shares))
        outcome = _fuzz(
            reader, inputs, options.seconds / len(readers), options.output.resolve(), options.seed
        )
        outcomes.append(outcome)
        print(
            f"{outcome.reader:18} {outcome.inputs:8} inputs, {outcome.accepted:7} accepted, "
            f"{outcome.refused:7} refused, {outcome.seconds:6.0f} s, {outcome.corpus:4} in the corpus, "
            f"{len(outcome.faults)} faults",
            flush=True,
        )
    total = sum(outcome.inputs for outcome in outcomes)
    faults = [fault for outcome in outcomes for fault in outcome.faults]
    (options.output / "counts.json").write_text(
        json.dumps(
            {"inputs": total, "faults": len(faults), "readers": [asdict(o) for o in outcomes]}, indent=1
        )
    )
    print(f"{total} inputs, {len(faults)} faults", *faults, sep="\n")
    return int(bool(faults))


def _fuzz(reader: Any, inputs: int, seconds: float, output: Path, seed: int) -> Outcome:
    """One reader in processes of its own: a fault ends one, and the next goes on with what is left."""
    corpus, faults = output / reader.name / "corpus", output / reader.name / "faults"
    for folder in (corpus, faults):
        folder.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(reader.seeds()):
        (corpus / f"seed{number}").write_bytes(data)
    found = {path.name for path in faults.iterdir()}
    counts = output / reader.name / "counts"
    counts.write_bytes(bytes(_COUNTS.size))
    started, done, tries = time.monotonic(), 0, 0
    while done < inputs and tries < 20 and (not seconds or time.monotonic() - started < seconds):
        tries += 1
        with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as scratch:
            command = [
                *(sys.executable, __file__, "--worker", reader.name, str(counts), scratch),
                *(f"-runs={inputs - done}", f"-seed={seed + tries}", f"-max_len={_LONGEST}"),
                *(f"-timeout={_SECONDS_PER_INPUT}", f"-rss_limit_mb={_MEGABYTES}", "-print_final_stats=1"),
                *(f"-artifact_prefix={faults}/", str(corpus)),
                *([f"-max_total_time={max(1, round(seconds))}"] if seconds else []),
            ]
            with (output / reader.name / f"log{tries}").open("w+", errors="replace") as log:
                process = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, check=False)
                log.seek(0)
                text = log.read()
        executed = re.search(r"number_of_executed_units: (\d+)", text)
        done += int(executed.group(1)) if executed else sum(_COUNTS.unpack(counts.read_bytes())) - done
        if process.returncode == 0:
            break
    accepted, refused = _COUNTS.unpack(counts.read_bytes())
    new = tuple(sorted(str(path) for path in faults.iterdir() if path.name not in found))
    elapsed = time.monotonic() - started
    if process.returncode and not new:
        new = (f"{output / reader.name}/log{tries} (the process left with {process.returncode})",)
    return Outcome(
        reader.name, accepted + refused, accepted, refused, elapsed, len(list(corpus.iterdir())), new
    )


def _work(name: str, counts: str, scratch: str, arguments: list[str]) -> None:
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
    file = os.open(counts, os.O_RDWR)
    shared = mmap.mmap(file, _COUNTS.size)
    from fuzz.mutation import mutate

    def test(data: bytes) -> None:
        accepted, refused = _COUNTS.unpack(shared)
        try:
            reader.read(data, folder)
        except reader.errors:
            refused += 1
        else:
            accepted += 1
        _COUNTS.pack_into(shared, 0, accepted, refused)

    def custom(data: bytes, limit: int, seed: int) -> bytes:
        if random.Random(seed).random() < 0.1:
            return atheris.Mutate(data, limit)
        return mutate(data, limit, seed, seeds)

    import logging

    logging.getLogger("ov_autoplace").setLevel(logging.CRITICAL)
    atheris.Setup([sys.argv[0], *arguments], test, custom_mutator=custom)
    atheris.Fuzz()


def _again(options: argparse.Namespace) -> int:
    (reader,) = _readers(options.readers)
    with tempfile.TemporaryDirectory() as folder:
        try:
            reader.read(options.again.read_bytes(), Path(folder))
        except reader.errors as error:
            print(f"{type(error).__name__}: {error}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
