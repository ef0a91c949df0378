"""The state of a training run on disk."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from ov_autoplace.errors import OutputError, TrainingError
from ov_autoplace.training.state import load_training, save_training
from ov_autoplace.training.state_file import load_state, save_state

pytestmark = pytest.mark.torch


class Run:
    """A little training run that uses everything random: dropout, a torch and a NumPy generator."""

    def __init__(self, width: int = 5) -> None:
        torch.manual_seed(0)
        self.network = torch.nn.Sequential(
            torch.nn.Linear(3, width),
            torch.nn.BatchNorm1d(width),
            torch.nn.Dropout(0.3),
            torch.nn.Linear(width, 1, bias=False),
        )
        self.optimizer = torch.optim.AdamW(
            [
                {"params": self.network[3].parameters(), "lr": 1e-2},
                {"params": [p for layer in self.network[:3] for p in layer.parameters()]},
            ],
            lr=1e-3,
            betas=(0.8, 0.95),
        )
        self.generators = {"data": np.random.default_rng(5), "noise": torch.Generator().manual_seed(7)}
        self.step = 0

    def train(self, steps: int) -> None:
        for _ in range(steps):
            x = torch.from_numpy(self.generators["data"].normal(size=(8, 3)).astype(np.float32))
            y = x.sum(dim=1, keepdim=True) + torch.randn(8, 1, generator=self.generators["noise"])
            loss = (self.network(x) - y).square().mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.optimizer.param_groups[0]["lr"] *= 0.9
            self.step += 1

    def save(self, path) -> None:
        save_training(path, self.network, self.optimizer, self.generators, {"step": self.step})

    def load(self, path) -> None:
        self.step = load_training(path, self.network, self.optimizer, self.generators)["step"]

    def everything(self) -> list:
        moments = [
            self.optimizer.state[p][name]
            for p in self.network.parameters()
            for name in ("exp_avg", "exp_avg_sq", "step")
        ]
        return [*self.network.state_dict().values(), *moments]


def equal(ours, theirs) -> bool:
    return len(ours) == len(theirs) and all(map(torch.equal, ours, theirs))


def test_going_on_in_a_fresh_process_equals_no_interruption_bit_for_bit(tmp_path):
    whole = Run()
    whole.train(6)

    first_half = Run()
    first_half.train(3)
    first_half.save(tmp_path / "half.safetensors")
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import torch\n"
        # Sums in another number of threads round differently.
        "torch.set_num_threads(int(sys.argv[4]))\n"
        "from test_state import Run\n"
        "run = Run()\n"
        "torch.manual_seed(99)\n"
        "run.load(sys.argv[2]); run.train(3); run.save(sys.argv[3])\n"
    )
    folder = str(Path(__file__).parent)
    command = [sys.executable, "-c", program, folder]
    files = [tmp_path / "half.safetensors", tmp_path / "end.safetensors"]
    subprocess.run([*command, *files, str(torch.get_num_threads())], check=True, timeout=120)
    second_half = Run()
    second_half.load(tmp_path / "end.safetensors")
    assert second_half.step == 6
    assert equal(second_half.everything(), whole.everything())
    assert [g["lr"] for g in second_half.optimizer.param_groups] == [
        g["lr"] for g in whole.optimizer.param_groups
    ]
    assert second_half.optimizer.param_groups[0]["betas"] == (0.8, 0.95)


@pytest.mark.parametrize("forgotten", ["optimizer", "random", "generator"])
def test_each_part_of_the_state_is_needed_for_that(tmp_path, forgotten):
    """The test above would notice if any part were left out."""
    whole = Run()
    whole.train(6)
    halves = Run()
    halves.train(3)
    halves.save(tmp_path / "half")
    tensors, values = load_state(tmp_path / "half")
    fresh = Run()
    fresh.load(tmp_path / "half")
    if forgotten == "optimizer":
        fresh.optimizer.state.clear()
    elif forgotten == "random":
        torch.manual_seed(99)
    else:
        fresh.generators["noise"].manual_seed(99)
    fresh.train(3)
    assert any(name.startswith(forgotten) for name in tensors)
    assert set(values["generators"]) == {"data"}
    assert not equal(fresh.everything(), whole.everything())


def test_further_tensors_of_a_run_such_as_averaged_weights_are_filled_in_place(tmp_path):
    run = Run()
    average = {name: torch.rand_like(p) for name, p in run.network.named_parameters()}
    save_training(tmp_path / "state", run.network, run.optimizer, run.generators, {}, average)
    ours = {name: torch.zeros_like(value) for name, value in average.items()}
    load_training(tmp_path / "state", run.network, run.optimizer, run.generators, ours)
    assert all(torch.equal(ours[name], average[name]) for name in average)
    with pytest.raises(TrainingError, match="is the state of another run"):
        run.load(tmp_path / "state")


def test_tensors_and_values_come_back_as_they_were(tmp_path):
    base = torch.arange(12.0)
    tensors = {
        "view": base[2:6],
        "shared": base[2:6],
        "transposed": base.reshape(3, 4).T,
        "number": torch.tensor(3.5),
        "empty": torch.zeros(0, 3),
        "bits": torch.tensor([1, 255], dtype=torch.uint8),
        "half": torch.tensor([0.1, -2.0], dtype=torch.bfloat16),
        "flags": torch.tensor([True, False]),
    }
    values = {"step": 3, "big": 2**127 + 1, "third": 1 / 3, "names": ["a", None, "é"]}
    save_state(tmp_path / "state", tensors, values)
    loaded, loaded_values = load_state(tmp_path / "state")
    assert loaded_values == values
    assert set(loaded) == set(tensors)
    for name, tensor in tensors.items():
        assert loaded[name].dtype == tensor.dtype
        assert torch.equal(loaded[name], tensor), name


def test_saving_replaces_the_old_state_only_when_the_new_one_is_complete(tmp_path):
    from full_disk import full_disk  # another process imports this file without the folder above

    path = tmp_path / "state"
    save_state(path, {"x": torch.zeros(2)}, {"step": 1})
    with full_disk(64), pytest.raises(OutputError, match=r"cannot write .*: file too large"):
        save_state(path, {"x": torch.ones(2)}, {"step": 2})
    assert load_state(path)[1] == {"step": 1}
    assert [file.name for file in tmp_path.iterdir()] == ["state"]


def test_a_state_in_a_folder_that_does_not_exist_is_one_sentence(tmp_path):
    with pytest.raises(OutputError, match="cannot write"):
        save_state(tmp_path / "none" / "state", {}, {})


def test_values_that_are_no_json_are_refused_and_nothing_is_written(tmp_path):
    for value in (float("nan"), object(), np.float32(1)):
        with pytest.raises(TrainingError, match="must be JSON"):
            save_state(tmp_path / "state", {}, {"value": value})
    assert not list(tmp_path.iterdir())


def _with_header(path, change) -> None:
    """Rewrite a safetensors file's metadata."""
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    change(header["__metadata__"])
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + content[8 + length :])


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda p: p.write_bytes(p.read_bytes()[:-2] + b"\x7f\x7f"), "checksum"),
        (lambda p: _with_header(p, lambda m: m.update(values='{"step": 4}')), "checksum"),
        (lambda p: _with_header(p, lambda m: m.update(version="2")), "has version 2"),
        (lambda p: _with_header(p, lambda m: m.update(format="pt")), "some other safetensors file"),
        (lambda p: _with_header(p, lambda m: m.clear()), "some other safetensors file"),
    ],
)
def test_a_damaged_foreign_or_newer_file_is_refused_with_one_sentence(tmp_path, damage, sentence):
    path = tmp_path / "state"
    save_state(path, {"x": torch.randn(3, generator=torch.Generator().manual_seed(1))}, {"step": 3})
    damage(path)
    with pytest.raises(TrainingError, match=sentence) as raised:
        load_state(path)
    assert "\n" not in str(raised.value)
    assert str(path) in str(raised.value)


def test_the_state_of_another_run_is_refused_and_changes_nothing(tmp_path):
    run = Run()
    run.train(2)
    run.save(tmp_path / "narrow")
    wide = Run(width=6)
    with pytest.raises(TrainingError, match=r"0.bias is \[5\] there and \[6\] here"):
        wide.load(tmp_path / "narrow")

    other = Run()
    other.generators["more"] = np.random.default_rng(0)
    before = [tensor.clone() for tensor in other.network.state_dict().values()]
    with pytest.raises(TrainingError, match="other random generators"):
        other.load(tmp_path / "narrow")

    other = Run()
    other.optimizer = torch.optim.Adam(other.network.parameters())
    with pytest.raises(TrainingError, match="an optimiser of other parameters"):
        other.load(tmp_path / "narrow")
    assert equal(list(other.network.state_dict().values()), before)

    save_state(tmp_path / "plain", {"x": torch.zeros(1)}, {})
    with pytest.raises(TrainingError, match="no state of a training run"):
        other.load(tmp_path / "plain")
