"""The regression gate: are the ratios of a new run as good as those of the last accepted one?

    python tools/bench/gate.py benchmarks.json build/bench/gate.json

Absolute times say nothing across machines, so only ratios are compared; lower is better for all of them.
A ratio got worse when it grew by more than the floor of its kind *and* the 95 % intervals of the two runs
exclude each other; ratios that do not vary from run to run have intervals of no width, so for them the
floor decides. Sections are compared when both files hold them with the same seed and extent. What the
documents claim is held against the new run alone. Exit status: 0 = nothing got worse and no claim has fallen,
1 = something got worse or is missing, or a claim has fallen, 2 = there was nothing to compare.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.report import table_lines
from harness.result import FLOORS, Claim, Ratio, Result, Table


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the gate says of one ratio.

    Attributes:
        name: Section and name of the ratio.
        old, new: What was accepted, and what is now; ``None`` = missing there.
        limit: The new value may not be above.
        word: ``worse``, ``missing``, ``new``, ``better`` or ``same``.
    """

    name: str
    old: Ratio | None
    new: Ratio | None
    limit: float
    word: str

    @property
    def fails(self) -> bool:
        """Whether the gate closes."""
        return self.word in ("worse", "missing")


def fallen(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Claims that the new run does not bear out, though the accepted one did or did not know them."""
    before = {(name, claim.what): claim.holds for name, claim in _claims(old)}
    return [
        f"{name}: {claim.what} is {claim.reached:.3g}, and the documents claim at most {claim.limit:.3g}"
        for name, claim in _claims(new)
        if not claim.holds and before.get((name, claim.what), True)
    ]


def _claims(document: Mapping[str, Any]) -> Iterator[tuple[str, Claim]]:
    for name, section in document["sections"].items():
        if "failure" not in section:
            yield from ((name, claim) for claim in Result.from_dict(section["result"]).claims)


def limit(old: Ratio, new: Ratio) -> float:
    """The largest new value that is not called worse: the floor, or both intervals' half widths if larger."""
    halves = (old.high - old.value) + (new.value - new.low)
    share = 1.0 if old.kind == "growth" else abs(old.value)
    return old.value + max(FLOORS[old.kind] * share, halves)


def compare(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[list[Verdict], list[str]]:
    """Hold a new ``benchmarks.json`` against the accepted one.

    Returns:
        A verdict per ratio, failures first; and sentences about sections that were not compared.
    """
    verdicts, remarks = [], []
    for name, section in new["sections"].items():
        accepted = old["sections"].get(name)
        if accepted is None:
            remarks.append(f"{name}: not in the accepted file")
        elif "failure" in section:
            remarks.append(f"{name}: did not end: {section['failure']}")
            verdicts += [Verdict(f"{name}: {r.name}", r, None, r.value, "missing") for r in _ratios(accepted)]
        elif "failure" in accepted:
            remarks.append(f"{name}: did not end in the accepted run: {accepted['failure']}")
        elif _extent(name, accepted) != _extent(name, section):
            remarks.append(
                f"{name}: not comparable, accepted with {accepted['extent']} and run with {section['extent']}"
            )
        else:
            verdicts += _judge(name, _ratios(accepted), _ratios(section))
    left_out = [name for name in old["sections"] if name not in new["sections"]]
    if left_out:
        remarks.append(f"not run this time: {', '.join(left_out)}")
    order = ("worse", "missing", "new", "better", "same")
    return sorted(verdicts, key=lambda v: order.index(v.word)), remarks


def _extent(name: str, section: Mapping[str, Any]) -> str:
    """What has to agree; the section of the gate itself does the same in quick and whole runs."""
    extent = str(section["extent"])
    return extent.partition(", ")[2] if name == "gate" else extent


def _ratios(section: Mapping[str, Any]) -> list[Ratio]:
    return list(Result.from_dict(section["result"]).ratios)


def _judge(section: str, accepted: Sequence[Ratio], found: Sequence[Ratio]) -> list[Verdict]:
    old, new = {r.name: r for r in accepted}, {r.name: r for r in found}
    verdicts = []
    for name in dict.fromkeys([*old, *new]):
        title = f"{section}: {name}"
        if name not in new:
            verdicts.append(Verdict(title, old[name], None, old[name].value, "missing"))
        elif name not in old:
            verdicts.append(Verdict(title, None, new[name], float("inf"), "new"))
        else:
            most = limit(old[name], new[name])
            least = 2 * old[name].value - limit(new[name], old[name])
            word = "worse" if new[name].value > most else "better" if new[name].value < least else "same"
            verdicts.append(Verdict(title, old[name], new[name], most, word))
    return verdicts


def show(verdicts: Sequence[Verdict], remarks: Sequence[str]) -> None:
    """Print what changed, and how many ratios did not."""
    changed = [v for v in verdicts if v.word != "same"]
    if changed:
        columns = ("ratio", "accepted", "now", "limit", "")
        rows = [(v.name, _cell(v.old), _cell(v.new), f"{v.limit:.4f}", v.word) for v in changed]
        print(*table_lines(Table("Ratios that changed (lower is better)", columns, rows)), sep="\n")
    for remark in remarks:
        print(remark)
    print(f"{len(verdicts)} ratios compared, {sum(v.fails for v in verdicts)} worse or missing")


def _cell(ratio: Ratio | None) -> str:
    if ratio is None:
        return "-"
    spread = "" if ratio.low == ratio.high else f" [{ratio.low:.4f}, {ratio.high:.4f}]"
    return f"{ratio.value:.4f}{spread}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("old", type=Path, help="the last accepted benchmarks.json")
    parser.add_argument("new", type=Path, help="what was measured now")
    arguments = parser.parse_args()
    old, new = (json.loads(path.read_text(encoding="utf-8")) for path in (arguments.old, arguments.new))
    verdicts, remarks = compare(old, new)
    show(verdicts, remarks)
    claims = fallen(old, new)
    print(*(f"fallen: {claim}" for claim in claims), sep="\n", end="\n" * bool(claims))
    if not verdicts and not claims:
        sys.exit(2)
    sys.exit(int(any(v.fails for v in verdicts) or bool(claims)))


if __name__ == "__main__":
    main()
