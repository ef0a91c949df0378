"""Readers of files of what is learned and of its training, and valid files for them to start from."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.files import cost_table_seeds, stored, target_seeds
from ov_autoplace.cost.features import DEVICE_FEATURES
from ov_autoplace.cost.learned import CostNetwork
from ov_autoplace.cost.op_graph import OpGraph
from ov_autoplace.cost.samples import CostSamples, Measurement, Network, Setting
from ov_autoplace.cost.table import CostTable
from ov_autoplace.cost.table_json import load_table
from ov_autoplace.cost.target_json import load_target
from ov_autoplace.policy.card import CARD, WEIGHTS, load_card, read_weights, write_checkpoint
from ov_autoplace.policy.config import CONFIGS


def collected_seeds() -> list[bytes]:
    """Costs of one network of two ops on one device."""
    each = np.array([1e6, 1e3])
    ops = OpGraph(
        ("MatMul", "Relu"), ("f32",) * 2, ((1, 4), (1, 4)), each, each, each, each,
        np.ones(2, np.int32), np.array([[0, 1]], np.int32),
    )  # fmt: skip
    kernels = np.zeros(2, np.int32), np.array([1e-3]), np.ones(1, np.int32)
    with tempfile.TemporaryDirectory() as folder:
        target = load_target(stored(target_seeds()[0], Path(folder), "machine.json"))
        setting = Setting("CPU, 2 threads, f32", "CPU", (target,), 1e-4)
        path = Path(folder) / "costs.npz"
        measured = Measurement(0, 0, 1e-3, 0.1, *kernels)
        CostSamples((Network("net", "family", ops),), (setting,), (measured,)).save(path)
        return [path.read_bytes()]


def cost_network_seeds() -> list[bytes]:
    """A network of costs without weights."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "network.npz"
        descriptors, kinds = np.zeros((1, len(DEVICE_FEATURES)), np.float32), np.zeros(1, np.int32)
        CostNetwork({}, ("MatMul",), frozenset({("MatMul", 2)}), descriptors, kinds, ("",), {}).save(path)
        return [path.read_bytes()]


def log_seeds() -> list[bytes]:
    """Two records, and a torn one."""
    return [b'{"step": 1, "loss": 0.5}\n{"step": 2, "loss": null}\n{"st', b""]


def card_seeds() -> list[bytes]:
    """The card of a checkpoint without weights."""
    with tempfile.TemporaryDirectory() as folder:
        write_checkpoint(
            Path(folder) / "new", b"", _small("hsdag"), {"models": ["net"]}, {"net": {"best": 1.0}}
        )
        return [(Path(folder) / "new" / CARD).read_bytes()]


def _signed(fields: Any) -> bytes:
    if isinstance(fields, dict):
        fields = {key: value for key, value in fields.items() if key != "sha256"}
        text = json.dumps(fields, sort_keys=True)
        fields["sha256"] = hashlib.sha256(text.encode()).hexdigest()
    return json.dumps(fields).encode()


def card(path: Path) -> None:
    """A checkpoint's card."""
    assert isinstance(load_card(path.parent).name, str)


def card_fields(fields: Any, folder: Path) -> bool:
    """A card whose checksum fits whatever it says."""
    try:
        stored(_signed(fields), folder, CARD)
    except (ValueError, RecursionError):
        return False
    stored(b"", folder, WEIGHTS)
    read_weights(load_card(folder))
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
        fields["weights"] = hashlib.sha256(weights).hexdigest()
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

    from ov_autoplace.training.state import state_bytes

    return [state_bytes({"network/w": torch.arange(4.0)}, {"values": {"step": 3}})]


def state(path: Path) -> None:
    """A training state's bytes."""
    from ov_autoplace.training.state import load_state

    load_state(path)


@cache
def _trained() -> tuple[Any, Any, Any]:
    import torch

    torch.manual_seed(0)
    network = torch.nn.Linear(2, 1)
    optimizer = torch.optim.AdamW(network.parameters(), 0.1)
    network(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    return network, optimizer, torch.Generator()


def state_field_seeds() -> list[bytes]:
    """Tensors as lists, and the values, of a state that fits the network of :func:`state_fields`."""
    from ov_autoplace.training.state import load_state, training_bytes

    with tempfile.TemporaryDirectory() as folder:
        content = training_bytes(*_trained(), {"step": 3}, {})
        tensors, values = load_state(stored(content, Path(folder), "state.safetensors"))
    lists = {
        name: {"type": str(t.dtype).removeprefix("torch."), "values": t.tolist() if t.numel() < 9 else None}
        for name, t in tensors.items()
    }
    return [json.dumps({"tensors": lists, "values": values}).encode()]


def state_fields(fields: Any, folder: Path) -> bool:
    """A state whose checksum fits, of any tensors and values, loaded into a network."""
    import torch

    from ov_autoplace.training.state import load_training, state_bytes

    network, optimizer, generator = _trained()
    try:
        tensors = {}
        for name, item in fields["tensors"].items():
            whole = generator.get_state() if item["values"] is None else item["values"]
            tensors[name] = torch.as_tensor(whole, dtype=getattr(torch, item["type"]))
        content = state_bytes(tensors, fields["values"])
    except Exception:  # torch and safetensors refuse to write it, each in its own way
        return False
    load_training(stored(content, folder, "state.safetensors"), network, optimizer, generator, {})
    assert set(network.state_dict()) == {"weight", "bias"}
    return True
