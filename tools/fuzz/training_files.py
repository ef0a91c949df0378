"""Readers of files of policies and of their training, and valid files for them to start from."""

from __future__ import annotations

import hashlib
import io
import json
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.files import cost_table_seeds, stored
from ov_autoplace.cost.table import CostTable
from ov_autoplace.cost.table_json import load_table
from ov_autoplace.policy.card import CARD, WEIGHTS, load_card, read_file
from ov_autoplace.policy.config import CONFIGS
from ov_autoplace.training.examples import label_task
from ov_autoplace.training.labelled import shard_bytes
from ov_autoplace.training.random_graphs import random_workload
from ov_autoplace.training.targets import RandomTargets, random_task
from ov_autoplace.training.workload import Workload

WORKLOAD: dict[str, Any] = {
    "schema": 1,
    "about": ["net", "family"],
    "num_ops": 9,
    "op_types": ["Parameter", "MatMul", "Relu"],
    "ranks": [1, 2, 0],
    "dims": [4, 2, -1],
    "flops": [[0.0, 0.0, 0.0, 0.0], [8.0, 0.0, 1.0, 0.0], [0.0, 2.0, 0.0, 0.0]],
    "weight_bytes": [0.0, 64.0, 0.0],
    "output_bytes": [16.0, 8.0, 8.0],
    "exchanged_bytes": [16.0, 24.0, 8.0],
    "busy": [False, True, True],
    "tensor_producer": [0, 1],
    "tensor_bytes": [16.0, 8.0],
    "tensor_offsets": [0, 2, 3],
    "tensor_consumers": [1, 2, 2],
    "tensor_is_constant": [False, False],
    "tensor_uncuttable": [False, True],
}


def _arrays(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: np.array(value) for name, value in fields.items()}


def workload_seeds() -> list[bytes]:
    """The archive of a workload."""
    file = io.BytesIO()
    np.savez_compressed(file, **_arrays(WORKLOAD))
    return [file.getvalue()]


def workload_arrays(fields: Any, folder: Path) -> bool:
    """A workload whose archive is whole and whose arrays are any."""
    try:
        arrays = {str(name).replace("/", "_"): value for name, value in _arrays(fields).items()}
        arrays = {name: value for name, value in arrays.items() if value.dtype != object}
        np.savez(folder / "net.npz", **arrays)
    except (ValueError, TypeError, AttributeError, RecursionError, OverflowError, OSError):
        return False
    Workload.load(folder / "net.npz")
    return True


def shard_seeds() -> list[bytes]:
    """A shard of one labelled problem."""
    workload = random_workload("random_tree", 5, 0)
    task = random_task(workload, np.random.default_rng(0), RandomTargets(), 2)
    return [shard_bytes([label_task(task)])]


def log_seeds() -> list[bytes]:
    """Two records, and a torn one."""
    return [b'{"step": 1, "loss": 0.5}\n{"step": 2, "loss": null}\n{"st', b""]


def card_seeds() -> list[bytes]:
    """The shipped checkpoint's card without its long parts."""
    from ov_autoplace.policy.card import _features, shipped_checkpoint

    shipped = shipped_checkpoint()
    fields = json.loads((shipped / CARD).read_text())
    fields |= {"training": {"max_devices": 6}, "metrics": {}, "features": _features()}
    fields["files"] = {WEIGHTS: hashlib.sha256(b"").hexdigest()}
    return [_signed(fields)]


def _signed(fields: Any) -> bytes:
    if isinstance(fields, dict):
        fields = {key: value for key, value in fields.items() if key != "sha256"}
        text = json.dumps(fields, sort_keys=True)
        fields["sha256"] = hashlib.sha256(text.encode()).hexdigest()
    return json.dumps(fields).encode()


def card(path: Path) -> None:
    """A checkpoint's card."""
    found = load_card(path.parent)
    assert isinstance(found.name, str)
    found.num_devices, found.max_devices  # noqa: B018 - they are read


def card_fields(fields: Any, folder: Path) -> bool:
    """A card whose checksum fits whatever it says, and the files that it names."""
    try:
        stored(_signed(fields), folder, CARD)
    except (ValueError, RecursionError):
        return False
    stored(b"", folder, WEIGHTS)
    found = load_card(folder)
    assert found.num_devices is None or isinstance(found.num_devices, int)
    for name in found.files:
        read_file(found, name)
    return True


def _small(name: str) -> dict[str, Any]:
    return CONFIGS[name].to_dict() | {"hidden": 4, "layers": 1}


def checkpoint_seeds() -> list[bytes]:
    """A small network of each kind: its configuration, and type and shape of each of its tensors."""
    from ov_autoplace.policy.config import NetworkConfig
    from ov_autoplace.policy.networks.network import make_network

    seeds = []
    for name in CONFIGS:
        tensors = make_network(NetworkConfig.from_dict(_small(name)), 0).state_dict()
        shapes = {key: [str(t.dtype).removeprefix("torch."), list(t.shape)] for key, t in tensors.items()}
        seeds.append(json.dumps({"network": _small(name), "tensors": shapes}).encode())
    return seeds


def _zeros(given: Any) -> Any:
    """A tensor of any type and shape that JSON may speak of; what is none becomes one."""
    import torch

    kind, shape = given if isinstance(given, list) and len(given) == 2 else (given, given)
    dtype = getattr(torch, kind, None) if isinstance(kind, str) else None
    sizes = [size % 1000 for size in shape if isinstance(size, int)] if isinstance(shape, list) else []
    return torch.zeros(sizes[:2], dtype=dtype if isinstance(dtype, torch.dtype) else torch.float32)


def checkpoint(given: Any, folder: Path) -> bool:
    """A checkpoint whose card vouches for its files, of any network and any tensors."""
    import safetensors.torch

    try:
        network = given["network"]
        if any(isinstance(value, int) and value > 128 for value in network.values()):
            return False  # a large network takes the memory that it says it takes
        tensors = {name: _zeros(shape) for name, shape in given["tensors"].items()}
        weights = safetensors.torch.save(tensors)
        fields = json.loads(card_seeds()[0]) | {"network": network}
        fields["files"] = {WEIGHTS: hashlib.sha256(weights).hexdigest()}
        signed = _signed(fields)
    except Exception:  # torch, safetensors and JSON refuse to write it, each in its own way
        return False
    stored(weights, folder, WEIGHTS)
    stored(signed, folder, CARD)
    from ov_autoplace.policy.networks.checkpoint import load_network

    assert load_network(folder).state_dict().keys() == tensors.keys()
    return True


@cache
def _tuned() -> tuple[CostTable, Callable[[], Any]]:
    """A table, and what makes a fine-tuning task of it that has measured nothing."""
    from ov_autoplace.decide.machine import Machine
    from ov_autoplace.graph.prepare import PreparedModel
    from ov_autoplace.training.finetuning.preparing import ProfiledModel
    from ov_autoplace.training.finetuning.task import TuningTask

    with tempfile.TemporaryDirectory() as folder:
        table = load_table(stored(cost_table_seeds()[0], Path(folder), "net.table.json"))
    table = replace(table, op_seconds=np.where(np.isinf(table.op_seconds), 0.2, table.op_seconds))
    none: Any = None
    profiled = ProfiledModel(Machine(none, table.devices), PreparedModel(none), "digest", none, table, 0.0)
    return table, lambda: TuningTask("net", profiled, none)  # nothing is compiled or raced


def measurements_seeds() -> list[bytes]:
    """The lines of a run that raced both devices and a mix, which won and lost when it was raced again."""
    from ov_autoplace.training.finetuning.task import ZERO_SHOT, Event

    task = _tuned()[1]()
    mix = task.trial("policy", np.array([0, 1, 1, 0], dtype=np.int32), 0.5)
    task.adopt_singles(task.singles)
    events = [Event("measured", single, (0.2, 0.3), (0.2, 0.2)) for single in task.singles]
    events += [Event("measured", mix, (0.1, 0.1), (0.2, 0.2), ZERO_SHOT), Event("confirmed", mix)]
    for event in events:
        event.trial.add(np.array(event.samples), np.array(event.reference))
    task.adopt(mix)
    events += [Event("again", mix, (0.1,), (0.2,)), Event("proposed", mix), Event("refuted", mix)]
    return [json.dumps([task.line(event) for event in events]).encode()]


def measurements(lines: Any, folder: Path) -> bool:
    """The measurement log of a fine-tuning run that goes on; the input is a list of its lines."""
    from ov_autoplace.training.finetuning.files import LOG, TuningFolder
    from ov_autoplace.training.finetuning.learning_curve import best_so_far
    from ov_autoplace.training.finetuning.task import Event

    try:
        text = "".join(json.dumps(line) + "\n" for line in lines)
    except (ValueError, RecursionError, TypeError):
        return False
    stored(b"", folder, "state.safetensors")
    stored(text.encode(errors="surrogatepass"), folder, LOG)
    run = TuningFolder(folder, resume=True)
    try:
        run.create()
        task = _tuned()[1]()
        task.restore(run.lines(task.name))
        best_so_far(run.lines(task.name))
        for trial in (task.champion, task.reference, *task.remembered(3)):
            json.dumps(task.line(Event("again", trial)))
            assert task.placement(trial).devices == task.table.devices
    finally:
        run.close()
    return True


def state_seeds() -> list[bytes]:
    """A training state."""
    import torch

    from ov_autoplace.training.state_file import save_state

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.safetensors"
        save_state(path, {"network/w": torch.arange(4.0)}, {"values": {"step": 3}})
        return [path.read_bytes()]


def state(path: Path) -> None:
    """A training state's bytes."""
    from ov_autoplace.training.state_file import load_state

    load_state(path)


@cache
def _trained() -> tuple[Any, Any, Any]:
    import torch

    torch.manual_seed(0)
    network = torch.nn.Linear(2, 1)
    optimizer = torch.optim.AdamW(network.parameters(), 0.1)
    network(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    return network, optimizer, {"samples": torch.Generator(), "order": np.random.default_rng(0)}


def state_field_seeds() -> list[bytes]:
    """Tensors as lists, and the values, of a state that fits the network of :func:`state_fields`."""
    from ov_autoplace.training.state import save_training
    from ov_autoplace.training.state_file import load_state

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.safetensors"
        save_training(path, *_trained(), {"step": 3})
        tensors, values = load_state(path)
    lists = {
        name: {"type": str(t.dtype).removeprefix("torch."), "values": t.tolist() if t.numel() < 9 else None}
        for name, t in tensors.items()
    }
    return [json.dumps({"tensors": lists, "values": values}).encode()]


def state_fields(fields: Any, folder: Path) -> bool:
    """A state whose checksum fits, of any tensors and values, loaded into a network."""
    import torch

    from ov_autoplace.training.state import load_training
    from ov_autoplace.training.state_file import save_state

    network, optimizer, generators = _trained()
    try:
        tensors = {}
        for name, item in fields["tensors"].items():
            whole = torch.get_rng_state() if item["values"] is None else item["values"]
            tensors[name] = torch.as_tensor(whole, dtype=getattr(torch, item["type"]))
        values = fields["values"]
        save_state(folder / "state.safetensors", tensors, values)
    except Exception:  # torch and safetensors refuse to write it, each in its own way
        return False
    load_training(folder / "state.safetensors", network, optimizer, generators)
    assert set(network.state_dict()) == {"weight", "bias"}
    return True
