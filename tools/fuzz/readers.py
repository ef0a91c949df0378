"""What reads something that a user, an older release or a broken disk wrote, and what each may raise over it.

A reader takes bytes and a scratch folder, and uses what it accepted the way the package does. Where a
checksum or an archive comes before the content, there are two readers: one of the file's bytes, and one
whose input is JSON from which a file with the right checksum is made, so that changes reach what lies behind.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fuzz import files, texts, training_files
from ov_autoplace.cli.placer_options import read_config
from ov_autoplace.cost.learned import CostNetwork
from ov_autoplace.cost.samples import CostSamples
from ov_autoplace.errors import (
    AutoplaceError,
    CheckpointError,
    CostTableError,
    DeviceError,
    OptionError,
    PlacementError,
    TargetError,
    TrainingError,
)
from ov_autoplace.plan.placement import Placement
from ov_autoplace.policy.card import CARD
from ov_autoplace.training.logs import read_log


@dataclass(frozen=True)
class Reader:
    """Something that reads.

    Attributes:
        name: Of what it reads.
        read: Reads bytes, with a scratch folder; returns when it accepts them, ``False``
            when they could not be made into anything to read.
        seeds: Makes valid inputs.
        errors: What it says that it raises.
        share: Of all inputs, relative to the other readers: slow ones get fewer.
        needs_torch: Whether it needs torch.
        opens: Of what reads a file: reads it by its path.
        file: Of what reads a file: its name. ``read`` writes the bytes under it, and opens it.
    """

    name: str
    read: Callable[[bytes, Path], object]
    seeds: Callable[[], list[bytes]]
    errors: tuple[type[AutoplaceError], ...]
    share: float = 1.0
    needs_torch: bool = False
    opens: Callable[[Path], object] | None = None
    file: str = ""


def _json(*values: object) -> Callable[[], list[bytes]]:
    return lambda: [json.dumps(value).encode() for value in values]


def _of_json(use: Callable[[Any, Path], object]) -> Callable[[bytes, Path], object]:
    """Reads bytes as JSON, and hands the value on."""

    def read(data: bytes, folder: Path) -> object:
        try:
            value = json.loads(data)
        except (ValueError, RecursionError):
            return False
        return use(value, folder)

    return read


def _texts(*values: str) -> Callable[[], list[bytes]]:
    return lambda: [value.encode() for value in values]


def _file(
    name: str,
    file: str,
    opens: Callable[[Path], object],
    seeds: Callable[[], list[bytes]],
    errors: tuple[type[AutoplaceError], ...],
    share: float = 1.0,
    needs_torch: bool = False,
) -> Reader:
    """A reader of a file of this name."""

    def read(data: bytes, folder: Path) -> object:
        return opens(files.stored(data, folder, file))

    return Reader(name, read, seeds, errors, share, needs_torch, opens, file)


READERS: tuple[Reader, ...] = (
    Reader(
        "affinity-file",
        files.affinity,
        _json(files.AFFINITY),
        (PlacementError,),
        6,
        opens=Placement.load,
        file=files.AFFINITY_FILE,
    ),
    Reader("annotated-model", _of_json(files.annotated_model), _json(files.NOTES, {}), (PlacementError,), 4),
    _file("cost-table", "net.table.json", files.cost_table, files.cost_table_seeds, (CostTableError,), 4),
    Reader("placed-table", files.placed_table, files.cost_table_seeds, (AutoplaceError,), 0.5),
    _file("answer", "answer.json", files.printed_answer, files.printed_answer_seeds, (OptionError,)),
    Reader("report", files.report, files.cost_table_seeds, (AutoplaceError,), 0.03),
    _file("target", "machine.json", files.target, files.target_seeds, (TargetError,), 1.5),
    _file("hetero-counts", "hetero-0.json", files.counts, _json(files.COUNTS), (TargetError,)),
    _file("transfers", "transfers-0.json", files.transfers, _json(files.TRANSFERS), (TargetError,)),
    _file(
        "dnn-partitioning", "graph.json", files.dnn_partitioning, _json(files.DNN_GRAPH), (CostTableError,), 5
    ),
    Reader("plan", _of_json(files.plan), _json(files.LANES), (PlacementError,), 1),
    Reader("pool-plan", _of_json(files.plan), _json(files.POOL), (PlacementError,), 1),
    _file("joint-plan", "net.plan.json", files.joint_plan, _json(files.JOINT), (PlacementError,), 4),
    _file("application", "net.app.json", files.application, _json(files.APPLICATION), (OptionError,), 4),
    _file("decision-cache", "autoplace-0.json", files.decision, _json(files.DECISION), (), 6),
    _file(
        "collected-costs",
        "costs.npz",
        CostSamples.load,
        training_files.collected_seeds,
        (TrainingError, TargetError),
    ),
    _file(
        "cost-network", "network.npz", CostNetwork.load, training_files.cost_network_seeds, (CheckpointError,)
    ),
    _file("log", "log.jsonl", read_log, training_files.log_seeds, (TrainingError,), 10),
    _file("card", CARD, training_files.card, training_files.card_seeds, (CheckpointError,), 4),
    Reader(
        "card-fields", _of_json(training_files.card_fields), training_files.card_seeds, (CheckpointError,), 2
    ),
    Reader(
        "checkpoint",
        _of_json(training_files.checkpoint),
        training_files.checkpoint_seeds,
        (CheckpointError,),
        0.2,
        True,
    ),
    _file(
        "state",
        "state.safetensors",
        training_files.state,
        training_files.state_seeds,
        (TrainingError,),
        4,
        True,
    ),
    Reader(
        "state-fields",
        _of_json(training_files.state_fields),
        training_files.state_field_seeds,
        (TrainingError,),
        0.2,
        True,
    ),
    Reader(
        "measurements",
        _of_json(training_files.measurements),
        training_files.measurements_seeds,
        (TrainingError,),
        1,
        True,
    ),
    _file(
        "configuration-file",
        "config.json",
        lambda path: read_config(str(path)),
        _json(texts.CONFIGURATION),
        (OptionError,),
        6,
    ),
    Reader("configuration", texts.configuration, _json(texts.CONFIGURATION), (OptionError,), 7),
    Reader("options", _of_json(texts.options), _json(*texts.OPTIONS), (OptionError,), 13),
    Reader("command-line", _of_json(texts.command_line), _json(*texts.ARGUMENTS), (OptionError,), 13),
    Reader(
        "constraints",
        _of_json(texts.constraints),
        _json(*texts.CONSTRAINTS),
        (OptionError, PlacementError),
        1.0,
    ),
    Reader("shapes", _of_json(texts.shapes), _json(*texts.SHAPES), (OptionError,), 4),
    Reader("budget", texts.budget, _texts("120s", "5m", "1.5h", "800ms", "90"), (OptionError,), 14),
    Reader("devices", texts.devices, _texts("CPU"), (DeviceError,), 1),
    Reader("extra-devices", texts.extra_devices, _texts(*texts.EXTRA_DEVICES), (DeviceError,), 0.1),
)
