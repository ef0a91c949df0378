"""What fuzzing found, added up over runs: a table of the readers in ``counts.json``."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

__all__ = ["Outcome", "add_up"]


@dataclass(frozen=True)
class Outcome:
    """What fuzzing one reader found, in one run or in several.

    Attributes:
        reader: Its name.
        inputs: How many it was given.
        accepted, refused: How many it took, and how many it refused as it says.
        skipped: Of how many nothing to read could be made.
        seconds: Wall-clock time.
        corpus: Inputs that reached code which none before them had reached, at the end.
        faults: Files that it should have taken or refused.
    """

    reader: str
    inputs: int
    accepted: int
    refused: int
    skipped: int
    seconds: float
    corpus: int
    faults: tuple[str, ...]

    def after(self, earlier: Outcome) -> Outcome:
        """The outcome of both runs; an earlier fault counts for as long as its file is kept."""
        kept = {fault for fault in earlier.faults if Path(fault).exists()}
        return replace(
            self,
            inputs=self.inputs + earlier.inputs,
            accepted=self.accepted + earlier.accepted,
            refused=self.refused + earlier.refused,
            skipped=self.skipped + earlier.skipped,
            seconds=self.seconds + earlier.seconds,
            faults=tuple(sorted(kept | set(self.faults))),
        )


def add_up(path: Path, seed: int, outcomes: Iterable[Outcome]) -> list[Outcome]:
    """Add outcomes of a run to a table, and write it.

    Args:
        path: The table, with what earlier runs found; made when it is not there.
        seed: Of the run. A seed that is in the table already is not named again.
        outcomes: Of readers that were fuzzed.

    Returns:
        All outcomes in the table.
    """
    table = json.loads(path.read_text()) if path.exists() else {"seeds": [], "readers": []}
    found = {row["reader"]: Outcome(**{**row, "faults": tuple(row["faults"])}) for row in table["readers"]}
    for outcome in outcomes:
        earlier = found.get(outcome.reader)
        found[outcome.reader] = outcome.after(earlier) if earlier else outcome
    table = {
        "inputs": sum(outcome.inputs for outcome in found.values()),
        "faults": sum(len(outcome.faults) for outcome in found.values()),
        "seeds": [*table["seeds"], *{seed}.difference(table["seeds"])],
        "readers": [asdict(outcome) for outcome in found.values()],
    }
    written = path.with_suffix(".new")
    written.write_text(json.dumps(table, indent=1))
    written.replace(path)  # a run that is stopped leaves the table of the readers before
    return list(found.values())
