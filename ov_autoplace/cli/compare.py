"""``ov-autoplace compare``: what two commands answered with ``--json``, side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from ov_autoplace._base.json_fields import Record
from ov_autoplace.cli import arguments
from ov_autoplace.cli.console import milliseconds, print_json, print_sentence, print_table
from ov_autoplace.errors import OptionError

__all__ = ["Answer", "compare", "moved_ops", "read_answer"]

First = Annotated[
    Path,
    typer.Argument(
        metavar="FIRST", show_default=False, help="What annotate, explain or bench printed with --json."
    ),
]
Second = Annotated[
    Path, typer.Argument(metavar="SECOND", show_default=False, help="The answer to compare with it.")
]
_ANSWER = "the answer"  # the pair of those that were chosen, whatever they are called
_LOADS = {
    "predicted": "predicted",
    "steady": "measured back to back",
    "paused": "measured after idle gaps",
    "sustained": "measured over periods of a quota",
    "waiting": "measured with waiting threads",
    "queued": "measured with a queue",
}


@dataclass(frozen=True, slots=True)
class _Time:
    """Milliseconds of an inference or a request, and the 95 % interval of what was measured."""

    ms: float
    interval: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What one command answered.

    Attributes:
        decision: In a sentence.
        facts: What it says of itself, by name.
        times: What it knows of the answer and of all candidates, by name and load.
        device_of: Where each op runs; empty where it does not say.
    """

    decision: str
    facts: Mapping[str, str]
    times: Mapping[tuple[str, str], _Time]
    device_of: Mapping[str, str] = field(repr=False)


def compare(first: First, second: Second, *, as_json: arguments.Json = False) -> None:
    """Show two answers that were printed with --json side by side: their times, and the ops that moved."""
    one, other = read_answer(first), read_answer(second)
    names = dict.fromkeys((*one.facts, *other.facts))
    facts = [(name, one.facts.get(name), other.facts.get(name)) for name in names]
    without = [str(path) for path, answer in ((first, one), (second, other)) if not answer.device_of]
    if as_json:
        moved = None if without else [{"op": op, "from": a, "to": b} for op, a, b in moved_ops(one, other)]
        print_json(
            {
                "first": str(first),
                "second": str(second),
                "facts": [{"name": name, "first": a, "second": b} for name, a, b in facts],
                "times": list(_time_values(one, other)),
                "moved": moved,
            }
        )
        return
    print_sentence(f"A: {first}: {one.decision}")
    print_sentence(f"B: {second}: {other.decision}")
    differing = [row for row in facts if row[1] != row[2]]
    if differing:
        print_table("What differs besides", ("", "~A", "~B"), differing)
    _print_times(one, other)
    none = f"Ops, which explain lists, are not compared: there are none in {' and '.join(without)}"
    print_sentence(none if without else _moves(one, other))


def moved_ops(one: Answer, other: Answer) -> list[tuple[str, str, str]]:
    """Ops of the first answer that the second runs on another device, with both devices."""
    return [
        (op, device, other.device_of[op])
        for op, device in one.device_of.items()
        if op in other.device_of and other.device_of[op] != device
    ]


def read_answer(path: Path) -> Answer:
    """Read what ``annotate``, ``explain`` or ``bench`` printed with ``--json``.

    Raises:
        OptionError: It cannot be read, or is the output of something else.
    """
    printed = Record.load(path, OptionError, "an answer")
    if not {"model", "devices", "decision"} <= printed.fields.keys():
        raise OptionError(f"{path} is no answer; keep what annotate, explain or bench print with --json")
    facts = {"model": printed.text("model"), "devices": ", ".join(printed.texts("devices"))}
    for name, key in (("chosen", "chosen"), ("mode", "mode"), ("costs", "cost_source")):
        if key in printed:
            facts[name] = printed.text(key)
    rows = printed.records("rows" if "rows" in printed else "candidates", "row")
    times = {(row.text("name"), load): time for row in rows for load, time in _times(row)}
    chosen = "AUTOPLACE" if "rows" in printed else facts.get("chosen")
    answer = {(_ANSWER, load): time for (name, load), time in times.items() if name == chosen}
    ops = printed.records("ops", "op") if "ops" in printed else ()
    return Answer(
        decision=printed.text("decision"),
        facts=facts,
        times={**answer, **times},
        # A lane is a part of its device.
        device_of={op.text("name"): op.text("device").partition("#")[0] for op in ops},
    )


def _times(row: Record) -> Iterator[tuple[str, _Time]]:
    """What is known of a candidate, by load."""
    if "predicted_ms" in row:
        yield "predicted", _Time(row.number("predicted_ms"))
    measured = row.record("measured")
    for load in _LOADS:
        if load in measured:
            of_load = measured.record(load)
            low, high = of_load.numbers("ci95_ms", 2) if "ci95_ms" in of_load else (None, None)
            interval = None if low is None or high is None else (low, high)
            yield load, _Time(of_load.number("median_ms"), interval)


def _pairs(one: Answer, other: Answer) -> Iterator[tuple[str, str, _Time | None, _Time | None]]:
    for name, load in dict.fromkeys((*one.times, *other.times)):
        yield name, load, one.times.get((name, load)), other.times.get((name, load))


def _time_values(one: Answer, other: Answer) -> Iterator[dict[str, Any]]:
    for name, load, a, b in _pairs(one, other):
        yield {
            "name": name,
            "load": load,
            "first_ms": None if a is None else a.ms,
            "second_ms": None if b is None else b.ms,
            "change": _change(a, b),
            "told_apart": _is_told_apart(a, b),
        }


def _is_told_apart(a: _Time | None, b: _Time | None) -> bool:
    """Whether both were measured, and their 95 % intervals do not overlap."""
    if a is None or b is None or a.interval is None or b.interval is None:
        return False
    return a.interval[1] < b.interval[0] or b.interval[1] < a.interval[0]


def _change(a: _Time | None, b: _Time | None) -> float | None:
    """How much longer the second takes, as a share of the first."""
    return None if a is None or b is None or a.ms <= 0 else b.ms / a.ms - 1


def _print_times(one: Answer, other: Answer) -> None:
    rows, is_unsure = [], False
    for name, load, a, b in _pairs(one, other):
        change = _change(a, b)
        unsure = change is not None and load != "predicted" and not _is_told_apart(a, b)
        is_unsure |= unsure
        shown = None if change is None else f"{100 * change:+.1f} %{' ~' if unsure else ''}"
        cells = (None if time is None else milliseconds(time.ms / 1e3) for time in (a, b))
        rows.append((name, _LOADS[load], *cells, shown))
    if rows:
        print_table("Milliseconds of an inference or a request", ("name", "how", ">A", ">B", ">change"), rows)
    if is_unsure:
        print_sentence("~ the 95 % intervals overlap, or there are none: not told apart")


def _moves(one: Answer, other: Answer) -> str:
    counts = Counter((a, b) for _, a, b in moved_ops(one, other))
    found = [f"{count:,} from {a} to {b}" for (a, b), count in counts.most_common()]
    parts = [f"ops on another device: {', '.join(found) if found else 'none'}"]
    for letter, own, others in (("A", one, other), ("B", other, one)):
        only = len(own.device_of.keys() - others.device_of.keys())
        if only:
            parts.append(f"only in {letter}: {only:,}")
    return "; ".join(parts)
