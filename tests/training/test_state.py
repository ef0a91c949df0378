"""The state of a tuning run on disk."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from ov_autoplace.errors import TrainingError
from ov_autoplace.training.state import load_state, load_training, state_bytes, training_bytes

pytestmark = pytest.mark.torch


class Run:
    """A little training run on random data, which keeps the mean of its weights."""

    def __init__(self, width: int = 5) -> None:
        torch.manual_seed(0)
        self.network = torch.nn.Sequential(
            torch.nn.Linear(3, width), torch.nn.BatchNorm1d(width), torch.nn.Linear(width, 1, bias=False)
        )
        self.optimizer = torch.optim.AdamW(
            [
                {"params": self.network[2].parameters(), "lr": 1e-2},
                {"params": [p for layer in self.network[:2] for p in layer.parameters()]},
            ],
            lr=1e-3,
            betas=(0.8, 0.95),
        )
        self.generator = torch.Generator().manual_seed(7)
        self.best = {name: torch.zeros_like(p) for name, p in self.network.named_parameters()}
        self.step = 0

    def train(self, steps: int) -> None:
        for _ in range(steps):
            x = torch.randn(8, 3, generator=self.generator)
            loss = (self.network(x) - x.sum(dim=1, keepdim=True)).square().mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.optimizer.param_groups[0]["lr"] *= 0.9
            for name, value in self.network.named_parameters():
                self.best[name].lerp_(value.detach(), 0.5)
            self.step += 1

    @property
    def _parts(self) -> tuple:
        return self.network, self.optimizer, self.generator

    def save(self, path: str | Path) -> None:
        Path(path).write_bytes(training_bytes(*self._parts, {"step": self.step}, self.best))

    def load(self, path: str | Path) -> None:
        self.step = load_training(path, *self._parts, self.best)["step"]

    def everything(self) -> list:
        moments = [
            self.optimizer.state[p][name]
            for p in self.network.parameters()
            for name in ("exp_avg", "exp_avg_sq", "step")
        ]
        return [*self.network.state_dict().values(), *self.best.values(), *moments]


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


@pytest.mark.parametrize("forgotten", ["optimizer", "generator", "best"])
def test_each_part_of_the_state_is_needed_for_that(tmp_path, forgotten):
    """The test above would notice if any part were left out."""
    whole = Run()
    whole.train(6)
    halves = Run()
    halves.train(3)
    halves.save(tmp_path / "half")
    fresh = Run()
    fresh.load(tmp_path / "half")
    if forgotten == "optimizer":
        fresh.optimizer.state.clear()
    elif forgotten == "generator":
        fresh.generator.manual_seed(99)
    else:
        fresh.best = Run().best
    fresh.train(3)
    assert any(name.startswith(forgotten) for name in load_state(tmp_path / "half")[0])
    assert not equal(fresh.everything(), whole.everything())


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
    (tmp_path / "state").write_bytes(state_bytes(tensors, values))
    loaded, loaded_values = load_state(tmp_path / "state")
    assert loaded_values == values
    assert set(loaded) == set(tensors)
    for name, tensor in tensors.items():
        assert loaded[name].dtype == tensor.dtype
        assert torch.equal(loaded[name], tensor), name


def test_values_that_are_no_json_are_refused():
    for value in (float("nan"), object(), np.float32(1)):
        with pytest.raises(TrainingError, match="must be JSON"):
            state_bytes({}, {"value": value})


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
    content = state_bytes({"x": torch.randn(3, generator=torch.Generator().manual_seed(1))}, {"step": 3})
    path.write_bytes(content)
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
    before = [tensor.clone() for tensor in other.network.state_dict().values()]
    other.best = {}
    with pytest.raises(TrainingError, match="is the state of another run"):
        other.load(tmp_path / "narrow")

    other = Run()
    other.optimizer = torch.optim.Adam(other.network.parameters())
    with pytest.raises(TrainingError, match="an optimiser of other parameters"):
        other.load(tmp_path / "narrow")
    assert equal(list(other.network.state_dict().values()), before)

    (tmp_path / "plain").write_bytes(state_bytes({"x": torch.zeros(1)}, {}))
    with pytest.raises(TrainingError, match="no state of a training run"):
        other.load(tmp_path / "plain")
