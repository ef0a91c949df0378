"""Options of the commands for a fleet, and what every one of them says of machines."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ov_autoplace.cli.console import milliseconds, note, print_sentence, progress_bar
from ov_autoplace.decide.options import PlacerOptions

if TYPE_CHECKING:
    from ov_autoplace.fleet.members import Member
    from ov_autoplace.fleet.merging import Merged
    from ov_autoplace.fleet.run import FleetRun, Group
    from ov_autoplace.fleet.targets import KindTarget

__all__ = [
    "FLEET_OPTIONS",
    "Address",
    "Kinds",
    "Limit",
    "MachinesPerKind",
    "OutputFolder",
    "Resume",
    "fleet_run",
    "group_values",
    "member_values",
    "number_text",
    "option_values",
    "say_missing",
    "say_outliers",
    "spread_text",
]

# What a machine of the fleet can be asked for; files of this computer are not there.
FLEET_OPTIONS = (
    "mode",
    "time_budget_ms",
    "pins",
    "memory_limits",
    "shapes",
    "solvers",
    "seed",
    "isolation",
    "executor",
    "lanes",
    "arrivals",
    "output_tolerance",
)

Address = Annotated[
    str,
    typer.Option(
        "--ray",
        metavar="ADDRESS",
        envvar="RAY_ADDRESS",
        show_default=False,
        help="The Ray cluster: HOST:PORT of its head from one of its nodes, auto, or ray://HOST:PORT.",
    ),
]
Kinds = Annotated[
    list[str] | None,
    typer.Option("--kind", metavar="NAME", help="Only this kind of machine. Repeatable.", show_default="all"),
]
MachinesPerKind = Annotated[
    int | None,
    typer.Option(
        "--machines", min=1, help="Measure on so many machines of a kind at most.", show_default="all"
    ),
]
Limit = Annotated[
    float,
    typer.Option(
        "--limit", min=1.0, help="Seconds that one measurement may take before another machine tries it."
    ),
]
OutputFolder = Annotated[
    Path,
    typer.Option(
        "--output", "-o", help="Folder for the answers, one in it for each kind, and for what was measured."
    ),
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Go on with what an earlier run in the folder measured.")
]


@contextmanager
def fleet_run(
    ray: str,
    output: Path,
    record: Mapping[str, Any],
    *,
    kinds: Sequence[str] | None,
    machines: int | None,
    limit: float,
    resume: bool,
) -> Iterator[FleetRun]:
    """What a command measures with, while it is connected; measurements are kept in OUTPUT/measurements.

    Args:
        ray: Address of the cluster.
        output: The command's folder.
        record: The command and what it was asked for: a run that is resumed was asked for the same.
        kinds: Only these kinds of machines.
        machines: Most machines of a kind.
        limit: Seconds for one measurement.
        resume: Go on with what is in the folder.
    """
    from ov_autoplace.fleet.connection import connected
    from ov_autoplace.fleet.kept import KeptAnswers
    from ov_autoplace.fleet.run import FleetRun

    with connected(ray), progress_bar() as progress:
        kept = KeptAnswers(output / "measurements", record, resume=resume)
        run = FleetRun(
            ray, wanted=kinds or (), most=machines, limit_seconds=limit, kept=kept, progress=progress
        )
        yield run
    _say_unused(run.unused)


def _say_unused(members: Sequence[Member]) -> None:
    """Say which nodes cannot be measured on, and what to do."""
    for member in members:
        note(f"{member.machine} is not measured on: it {member.problem}")


def say_missing(groups: Sequence[Group]) -> None:
    """Say what machines warned of, and what is missing."""
    for group in groups:
        for sentence in dict.fromkeys(group.notes):
            note(f"{group.kind.name}: {sentence}")
        for sentence in group.missing:
            note(f"{group.kind.name}: missing: {sentence}")


def say_outliers(kinds: Sequence[Mapping[str, Any]]) -> None:
    """Name the machines that :func:`group_values` of each kind tells something odd about."""
    for kind in kinds:
        for machine, what in kind["outliers"].items():
            print_sentence(f"outlier of {kind['kind']}: {machine}: {what}")


def group_values(group: Group, measured: Merged | KindTarget | None) -> dict[str, Any]:
    """A kind of machine for ``--json``, and what its machines measured.

    Args:
        group: The machines.
        measured: ``None`` where nothing was.
    """
    spread = {} if measured is None else measured.spread
    return {
        "kind": group.kind.name,
        "devices": list(group.kind.devices),
        "facts": list(group.kind.facts),
        "machines": list(group.machines if measured is None else measured.machines),
        "spread": {
            device: {"median_ms": s.median_seconds * 1e3, "low": s.low, "high": s.high, "per_op": s.per_op}
            for device, s in spread.items()
        },
        "outliers": {} if measured is None else dict(measured.outliers),
        "missing": list(group.missing),
        "notes": list(group.notes),
    }


def option_values(options: PlacerOptions) -> dict[str, Any]:
    """The options that a machine of a fleet is given, as JSON values.

    Properties are passed as text, in which OpenVINO takes all of them.
    """
    from ov_autoplace.devices.names import property_text

    values = {f.name: getattr(options, f.name) for f in fields(options) if f.name in FLEET_OPTIONS}
    properties = {
        key: {k: property_text(v) for k, v in value.items()}
        if isinstance(value, Mapping)
        else property_text(value)
        for key, value in options.properties.items()
    }
    plain: dict[str, Any] = json.loads(json.dumps({**values, "properties": properties}, default=dict))
    return plain


def member_values(member: Member) -> dict[str, Any]:
    """A node of the cluster for ``--json``."""
    return {
        "machine": member.machine,
        "address": member.node.address,
        "kind": None if member.kind is None else member.kind.name,
        "devices": [] if member.kind is None else list(member.kind.devices),
        "full_names": member.full_names,
        "problem": member.problem,
    }


def number_text(value: float | None) -> str | None:
    """Milliseconds for a table."""
    return None if value is None else milliseconds(value / 1e3)


def spread_text(spread: Mapping[str, Mapping[str, float]], machines: int) -> str | None:
    """Fastest and slowest of some machines, relative to the median, on the device where they differ most."""
    if not spread or machines == 1:
        return None
    widest = max(spread.values(), key=lambda s: s["high"] - s["low"])
    return f"{100 * (widest['low'] - 1):+.0f} % to {100 * (widest['high'] - 1):+.0f} %"
