"""``ov-autoplace cache``: what was measured and decided and is kept in the user's cache folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from ov_autoplace._base.files import os_reason
from ov_autoplace.cli import arguments
from ov_autoplace.cli.console import bytes_text, print_json, print_sentence, print_table, progress_bar
from ov_autoplace.errors import AutoplaceError, DeviceError, OptionError, OutputError, TargetError

if TYPE_CHECKING:
    from ov_autoplace.cost.transfers import TransferSample
    from ov_autoplace.measure.transfer_store import StoredTransfers
    from ov_autoplace.plan.hetero_rules import StoredCounts

__all__ = ["cache"]

# Medians of transfers of one machine differ by this factor between two quiet hours; more is another machine.
_DRIFT = 1.5


class _Action(str, Enum):
    LS = "ls"
    RM = "rm"
    VERIFY = "verify"


def cache(
    action: Annotated[
        _Action,
        typer.Argument(
            metavar="ls|rm|verify",
            help="ls: show the entries; rm: remove them; verify: check their files, and measure again what "
            "was measured here.",
            show_default=False,
        ),
    ],
    entries: Annotated[
        list[str] | None, typer.Argument(metavar="ENTRY", help="Names that ls shows; all when left out.")
    ] = None,
    as_json: arguments.Json = False,
) -> None:
    """What is kept of this machine: costs of transfers between its devices, and decisions about models.

    Of an OpenVINO that is newer than this package, also how HETERO cuts models.

    The folder is $XDG_CACHE_HOME/ov-autoplace, or ~/.cache/ov-autoplace. Decisions of programs that name a
    CACHE_DIR are in that folder, beside OpenVINO's own files, and not listed here.
    """
    paths = _chosen(entries or [])
    if action is _Action.RM:
        rows = [_removed(path) for path in paths]
    elif action is _Action.LS:
        rows = [_shown(path) for path in paths]
    else:
        with progress_bar() as progress:
            rows = []
            for number, path in enumerate(paths):
                progress(number, len(paths), path.name)
                rows.append(_verified(path))
    if as_json:
        print_json({"folder": str(_folder()), "entries": rows})
    elif rows:
        columns = {"bytes": ">size", "sizes": ">sizes", "set": "~properties set", "remark": "~remark"}
        columns |= {"decision": "~decision"}
        keys = [key for key in rows[0] if key != "holds for"]  # five lines each, for programs
        cells = [[bytes_text(row[k]) if k == "bytes" else row[k] for k in keys] for row in rows]
        print_table(str(_folder()), [columns.get(key, key) for key in keys], cells)
    else:
        print_sentence(f"{_folder()} holds no measurements and no decisions")
    if action is _Action.VERIFY and any(row["state"] in ("damaged", "differs") for row in rows):
        raise typer.Exit(1)


def _folder() -> Path:
    from ov_autoplace._base.user_cache import user_cache_folder

    folder = user_cache_folder()
    if folder is None:
        raise OptionError("there is no home folder; set XDG_CACHE_HOME to an absolute path")
    return folder


def _chosen(names: list[str]) -> list[Path]:
    from ov_autoplace.measure.transfer_store import stored_transfers
    from ov_autoplace.plan.hetero_rules import stored_counts
    from ov_autoplace.plugin.decision_cache import kept_decisions

    _folder()
    paths = [*stored_transfers(), *stored_counts(), *kept_decisions()]
    known = {path.name: path for path in paths} | {path.stem: path for path in paths}
    for name in names:
        if name not in known:
            raise OptionError(f"there is no entry {name!r}; `ov-autoplace cache ls` shows their names")
    return [known[name] for name in dict.fromkeys(names)] if names else paths


def _removed(path: Path) -> dict[str, Any]:
    from ov_autoplace._base.locks import remove_unless_locked

    try:
        path.unlink(missing_ok=True)
        remove_unless_locked(path.with_suffix(".lock"))
    except OSError as cause:
        raise OutputError(f"cannot remove {path}: {os_reason(cause)}") from cause
    return {"entry": path.name, "state": "removed"}


def _shown(path: Path) -> dict[str, Any]:
    from ov_autoplace.measure.transfer_store import SIZES, StoredTransfers
    from ov_autoplace.plan.hetero_rules import COUNTS, StoredCounts
    from ov_autoplace.plugin.decision_cache import DECISIONS, StoredDecision

    row: dict[str, Any] = {"entry": path.name, "devices": "", "sizes": "", "bytes": 0}
    row |= {"set": "", "decision": "", "holds for": ""}
    try:
        row["bytes"] = path.stat().st_size
        if path.match(DECISIONS):
            stored = StoredDecision.read(path)
            return {**row, "devices": ", ".join(stored.plan.devices), "decision": stored.reason}
        if path.match(COUNTS):
            counted = StoredCounts.load(path)
            return {**row, "decision": str(counted), "holds for": f"OpenVINO {counted.openvino}"}
        entry = StoredTransfers.load(path)
    except (AutoplaceError, OSError) as cause:
        return {**row, "set": f"damaged: {cause}", "holds for": f"damaged: {cause}"}
    sizes = {sample.tensor_bytes for sample in entry.samples}
    return {
        **row,
        "devices": ", ".join(entry.devices),
        "sizes": f"{len(sizes)} of {len(SIZES)}",
        "set": "; ".join(filter(None, (_set_of(device, entry.settings) for device in entry.devices))),
        "holds for": "; ".join(entry.conditions),
    }


def _set_of(device: str, settings: Mapping[str, Mapping[str, str]]) -> str:
    """The properties of a device that are not what it has by itself."""
    own = settings.get(device, {})
    told = [f"{key}={value}" for key, value in own.items() if key != "EXCLUSIVE_ASYNC_REQUESTS"]
    return f"{device} {', '.join(told)}" if told else ""


def _verified(
    path: Path, measure: Callable[[StoredTransfers], Sequence[TransferSample]] | None = None
) -> dict[str, Any]:
    """Whether an entry is damaged, is of another machine, or still says what ``measure`` finds now."""
    from ov_autoplace.measure.transfer_store import StoredTransfers
    from ov_autoplace.plan.hetero_rules import COUNTS, StoredCounts
    from ov_autoplace.plugin.decision_cache import DECISIONS, StoredDecision

    try:
        if path.match(COUNTS):
            return _counted_again(path.name, StoredCounts.load(path))
        if path.match(DECISIONS):
            StoredDecision.read(path)
            return {"entry": path.name, "state": "can be read", "remark": ""}
        entry = StoredTransfers.load(path)
    except AutoplaceError as cause:
        return {"entry": path.name, "state": "damaged", "remark": str(cause)}
    try:
        ratios = _ratios(entry.samples, (measure or _measured_again)(entry))
    except _ElsewhereError as cause:
        return {"entry": path.name, "state": "other machine", "remark": str(cause)}
    except AutoplaceError as cause:
        return {"entry": path.name, "state": "not measured", "remark": str(cause)}
    factor, worst = float(np.median(ratios)), max(ratios)
    state = "holds" if 1 / _DRIFT <= factor <= _DRIFT else "differs"
    remark = f"takes {factor:.2f} times as long now in the median, {worst:.2f} times at most"
    return {"entry": path.name, "state": state, "remark": remark}


def _counted_again(name: str, stored: StoredCounts) -> dict[str, Any]:
    """Whether HETERO still cuts models as it did."""
    import openvino as ov

    from ov_autoplace.plan.hetero_rules import CANARIES, canary_counts

    if stored.openvino != ov.get_version() or stored.canaries != tuple(CANARIES):
        remark = f"it holds for: OpenVINO {stored.openvino}"
        return {"entry": name, "state": "other machine", "remark": remark}
    now = canary_counts()
    remark = f"makes {list(now)} submodels of small models now, and made {list(stored.counts)}"
    return {"entry": name, "state": "holds" if now == stored.counts else "differs", "remark": remark}


class _ElsewhereError(Exception):
    """An entry that was not measured under the conditions of this machine."""


def _measured_again(entry: StoredTransfers) -> Sequence[TransferSample]:
    """The stored sizes on this machine."""
    import openvino as ov

    from ov_autoplace.devices.conditions import measuring_conditions
    from ov_autoplace.devices.names import resolve_devices
    from ov_autoplace.measure.isolation.interface import profiler_for
    from ov_autoplace.measure.transfers import measure_transfers

    core = ov.Core()
    try:
        resolve_devices(core, entry.devices)
    except DeviceError as cause:
        raise _ElsewhereError(str(cause)) from cause
    here = measuring_conditions(core, entry.devices, entry.settings)
    if here != entry.conditions:
        strange = next((line for line in entry.conditions if line not in here), entry.conditions[0])
        raise _ElsewhereError(f"it holds for: {strange}")
    sizes = sorted({sample.tensor_bytes for sample in entry.samples})
    profiler = profiler_for(core, entry.devices, entry.settings)
    return measure_transfers(profiler, entry.devices, sizes=sizes).samples


def _ratios(stored: Sequence[TransferSample], measured: Sequence[TransferSample]) -> list[float]:
    """What placements take now over what they took."""
    now = {(s.devices, s.tensor_bytes): float(np.median(s.seconds)) for s in measured}
    ratios = [
        now[s.devices, s.tensor_bytes] / float(np.median(s.seconds))
        for s in stored
        if (s.devices, s.tensor_bytes) in now
    ]
    if not ratios:
        raise TargetError("it holds no sample that can be measured again")
    return ratios
