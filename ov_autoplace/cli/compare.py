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


@dataclass(frozen=True, slots=True)
class _Latency:
    """Seconds of one candidate, as far as they are known, and the 95 % interval of what was measured."""

    measured: float | None = None
    predicted: float | None = None
    interval: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What one command answered.

    Attributes:
        decision: In a sentence.
        facts: What it says of itself, by name.
        latencies: The answer first, below it the candidates by name.
        rates: Measured requests a second with waiting threads and with a queue, by name.
        device_of: Where each op runs; empty where it does not say.
    """

    decision: str
    facts: Mapping[str, str]
    latencies: Mapping[str, _Latency]
    rates: Mapping[str, tuple[float | None, float | None]]
    device_of: Mapping[str, str] = field(repr=False)


def compare(first: First, second: Second, *, as_json: arguments.Json = False) -> None:
    """Show two answers that were printed with --json side by side: latencies, rates, the ops that moved."""
    one, other = read_answer(first), read_answer(second)
    names = dict.fromkeys((*one.facts, *other.facts))
    facts = [(name, one.facts.get(name), other.facts.get(name)) for name in names]
    without = [str(path) for path, answer in ((first, one), (second, other)) if not answer.device_of]
    if as_json:
        print_json(
            {
                "first": str(first),
                "second": str(second),
                "facts": [{"name": name, "first": a, "second": b} for name, a, b in facts],
                "latencies": list(_latency_values(one, other)),
                "rates": [
                    {"name": name, "first": one.rates.get(name), "second": other.rates.get(name)}
                    for name in dict.fromkeys((*one.rates, *other.rates))
                ],
                "moved": None
                if without
                else [{"op": op, "from": a, "to": b} for op, a, b in moved_ops(one, other)],
            }
        )
        return
    print_sentence(f"A: {first}: {one.decision}")
    print_sentence(f"B: {second}: {other.decision}")
    differing = [row for row in facts if row[1] != row[2]]
    if differing:
        print_table("What differs besides", ("", "~A", "~B"), differing)
    _print_latencies(one, other)
    _print_rates(one, other)
    if without:
        print_sentence(
            f"Ops, which explain lists, are not compared: there are none in {' and '.join(without)}"
        )
    else:
        print_sentence(_moves(one, other))


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
    found = {row.text("name"): row for row in rows}
    chosen = "AUTOPLACE" if "rows" in printed else facts.get("chosen")
    many = {name: row for name, row in found.items() if row.integer("requests", 0, 2**31 - 1)}
    latencies = {name: _latency(row) for name, row in found.items() if name not in many}
    if chosen in latencies:
        latencies = {_ANSWER: latencies[chosen], **latencies}
    ops = printed.records("ops", "op") if "ops" in printed else ()
    return Answer(
        decision=printed.text("decision"),
        facts=facts,
        latencies=latencies,
        rates={name: (_rate(row, "waiting"), _rate(row, "queued")) for name, row in many.items()},
        # A lane is a part of its device.
        device_of={op.text("name"): op.text("device").partition("#")[0] for op in ops},
    )


def _latency(row: Record) -> _Latency:
    """What is known of a candidate, in seconds."""
    predicted = row.number("predicted_ms") / 1e3 if "predicted_ms" in row else None
    measured = row.record("measured")
    load = next((load for load in ("sustained", "steady") if load in measured), None)
    if load is None:
        return _Latency(None, predicted)
    of_load = measured.record(load)
    interval = of_load.numbers("ci95_ms", 2) if "ci95_ms" in of_load else None
    return _Latency(
        of_load.number("median_ms") / 1e3,
        predicted,
        None if interval is None else (interval[0] / 1e3, interval[1] / 1e3),
    )


def _rate(row: Record, load: str) -> float | None:
    """Requests a second under a load."""
    measured = row.record("measured")
    milliseconds = measured.record(load).number("median_ms") if load in measured else 0.0
    return 1e3 / milliseconds if milliseconds else None


def _pairs(one: Answer, other: Answer) -> Iterator[tuple[str, _Latency, _Latency]]:
    for name in dict.fromkeys((*one.latencies, *other.latencies)):
        yield name, one.latencies.get(name, _Latency()), other.latencies.get(name, _Latency())


def _latency_values(one: Answer, other: Answer) -> Iterator[dict[str, Any]]:
    for name, a, b in _pairs(one, other):
        yield {
            "name": name,
            **{
                which: {"measured_ms": _ms(row.measured), "predicted_ms": _ms(row.predicted)}
                for which, row in (("first", a), ("second", b))
            },
            "measured_change": _change(a.measured, b.measured),
            "predicted_change": _change(a.predicted, b.predicted),
            "told_apart": _is_told_apart(a, b),
        }


def _is_told_apart(a: _Latency, b: _Latency) -> bool:
    """Whether both were measured, and their 95 % intervals do not overlap."""
    if a.interval is None or b.interval is None:
        return False
    return a.interval[1] < b.interval[0] or b.interval[1] < a.interval[0]


def _print_latencies(one: Answer, other: Answer) -> None:
    rows, is_unsure = [], False
    for name, a, b in _pairs(one, other):
        change, mark = _change(a.measured, b.measured), ""
        if change is not None and not _is_told_apart(a, b):
            mark, is_unsure = " ~", True
        seconds = (a.measured, b.measured, a.predicted, b.predicted)
        cells = [None if s is None else milliseconds(s) for s in seconds]
        rows.append(
            (name, *cells[:2], None if change is None else f"{100 * change:+.1f} %{mark}", *cells[2:])
        )
    if not rows:
        return
    heads = ("name", ">measured\nA", ">measured\nB", ">change", ">predicted\nA", ">predicted\nB")
    print_table("Latency in ms", heads, rows)
    if is_unsure:
        print_sentence("~ the 95 % intervals overlap, or there are none: not told apart")


def _print_rates(one: Answer, other: Answer) -> None:
    nothing = (None, None)
    rows = [
        (
            name,
            *(None if rate is None else f"{rate:,.0f}" for pair in zip(a, b, strict=True) for rate in pair),
        )
        for name in dict.fromkeys((*one.rates, *other.rates))
        for a, b in [(one.rates.get(name, nothing), other.rates.get(name, nothing))]
    ]
    if rows:
        heads = ("name", ">A waiting\nthreads", ">B waiting\nthreads", ">A\nqueue", ">B\nqueue")
        print_table("Requests a second, measured", heads, rows)


def _moves(one: Answer, other: Answer) -> str:
    counts = Counter((a, b) for _, a, b in moved_ops(one, other))
    found = [f"{count:,} from {a} to {b}" for (a, b), count in counts.most_common()]
    parts = [f"ops on another device: {', '.join(found) if found else 'none'}"]
    for letter, own, others in (("A", one, other), ("B", other, one)):
        only = len(own.device_of.keys() - others.device_of.keys())
        if only:
            parts.append(f"only in {letter}: {only:,}")
    return "; ".join(parts)


def _change(before: float | None, after: float | None) -> float | None:
    """How much longer the second takes, as a share of the first."""
    return None if before is None or after is None or before <= 0 else after / before - 1


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1e3
