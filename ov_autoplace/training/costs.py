"""Training the network of costs on what was collected."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from operator import attrgetter
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ov_autoplace._base.arrays import FloatArray, IntArray
from ov_autoplace._base.progress import Progress
from ov_autoplace._version import __version__
from ov_autoplace.cost.features import DEVICE_FEATURES, OP_FEATURES, OpInputs, descriptor
from ov_autoplace.cost.learned import MOST_CORRECTION, CostNetwork, kernels_of
from ov_autoplace.cost.op_graph import OpGraph
from ov_autoplace.cost.samples import CostSamples
from ov_autoplace.errors import TrainingError
from ov_autoplace.policy.networks.messages import Topology, message_library, propagate
from ov_autoplace.training.settings import CostSettings
from ov_autoplace.training.threads import torch_threads

__all__ = ["train_costs"]

_DISPATCH = 0.5e-6  # seconds below which a kernel's time is noise of the counters
_RARE = 3  # networks in which an op type or a kernel has to occur to be learned
# Weights of the parts of the loss. That of kinds has them say nothing that need not be said.
_WHOLE, _RATIO, _DOUBT, _FINE, _SPEED, _KINDS = 1.0, 0.5, 0.1, 0.5, 1.0, 0.02
# Other work only makes a measurement longer, so a whole latency should be met where fewer than half of those
# of other hours would lie: what is too long weighs more than what is too short.
_TOO_LONG, _TOO_SHORT = 1.2, 0.8
_WAYS = 4  # in which a device may be known, see ``CostSamples.known``


_Seen = TypeVar("_Seen", str, tuple[str, int])


@dataclass(frozen=True, eq=False)
class _Example:
    """One measurement as the network sees it, in a setting of all files, on a kind of device."""

    setting: int
    kind: int
    inputs: OpInputs
    rows: IntArray
    kernel_of: IntArray
    kernel_seconds: FloatArray
    seconds: float
    launch: float


_Measured = list[list[_Example]]
"""A network by setting, and by what is known of the device."""


class _Model(nn.Module):
    """A member of the network of :mod:`ov_autoplace.cost.learned`, to be trained."""

    def __init__(self, types: int, alike: Tensor, settings: CostSettings) -> None:
        super().__init__()
        # A shared machine is faster in one hour than in another, and a setting is measured within one. What
        # the reference model does not tell of that says nothing of ops: each setting has a speed of its own,
        # which is forgotten after training.
        self.speed = nn.Parameter(torch.zeros(len(alike)))
        self.alike = alike
        width, kinds = settings.hidden, _kind(1 + int(alike.max()), 0)
        self.kind, self.head_kind = (nn.Parameter(torch.zeros(kinds, width)) for _ in range(2))
        self.embedding = nn.Parameter(0.1 * torch.randn(types + 1, width))
        inputs = len(OP_FEATURES) + len(DEVICE_FEATURES)
        self.values = nn.Parameter(torch.randn(inputs, width) / math.sqrt(inputs))
        self.layers = nn.ModuleList(nn.ParameterDict(_layer(width)) for _ in range(settings.layers))
        self.head0 = nn.Linear(width, width)
        self.head1 = nn.Linear(width, 3)
        with torch.no_grad():
            self.head1.weight.mul_(0.1)
            self.head1.bias.copy_(torch.tensor([0.0, 2.0, -1.0]))

    def forward(
        self, rows: Tensor, values: Tensor, topology: Topology, kinds: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Correction, logarithm of the gate, and doubt of each op, by the kind of device that runs it."""
        h = torch.relu(self.embedding[rows] + values @ self.values + self.kind[kinds])
        for layer in self.layers:
            received = propagate(topology, h @ layer["in"], reduce="mean")
            received = received + propagate(topology.reversed, h @ layer["out"], reduce="mean")
            h = h + torch.relu(h @ layer["self"] + received + layer["bias"])
        out = self.head1(torch.relu(self.head0(h) + self.head_kind[kinds]))
        correction = out[:, 0].clamp(-MOST_CORRECTION, MOST_CORRECTION)
        return correction, nn.functional.logsigmoid(out[:, 1]), out[:, 2]

    def slowness(self) -> Tensor:
        """Logarithms of how slow the machine was, ``float[S]``: 0 of the fastest of settings that are alike.

        Other work only makes it slower, so the fastest is the least disturbed.
        """
        fastest = torch.zeros(len(self.alike)).scatter_reduce(
            0, self.alike, self.speed, "amax", include_self=False
        )
        return fastest[self.alike] - self.speed

    def weights(self) -> dict[str, NDArray[np.float32]]:
        """By the names of :class:`~ov_autoplace.cost.learned.CostNetwork`."""
        named: dict[str, Tensor] = {
            "embedding": self.embedding,
            "values": self.values,
            "kind": self.kind,
            "head.kind": self.head_kind,
        }
        for number, layer in enumerate(self.layers):
            named |= {f"{number}.{part}": value for part, value in layer.items()}
        for name, linear in (("head.0", self.head0), ("head.1", self.head1)):
            named |= {name: linear.weight.T, f"{name}.bias": linear.bias}
        return {name: value.detach().numpy().astype(np.float32) for name, value in named.items()}


def _kind(alike: int, way: int) -> int:
    """Row in the vectors of kinds of a device that is known in one of the ways; row 0 is any other's.

    A calibration and what a device tells of itself differ by what only the vectors can tell.
    """
    return 1 + _WAYS * alike + way


def _layer(width: int) -> dict[str, nn.Parameter]:
    parts = {
        part: nn.Parameter(torch.randn(width, width) / math.sqrt(width)) for part in ("self", "in", "out")
    }
    return {**parts, "bias": nn.Parameter(torch.zeros(width))}


def train_costs(
    samples: Sequence[CostSamples],
    settings: CostSettings,
    *,
    progress: Progress | None = None,
) -> CostNetwork:
    """Train a network of costs.

    Args:
        samples: One file's for each kind of machine. What is held out is not to be among them.
        settings: How.
        progress: Called with (epochs done, all, text).

    Raises:
        TrainingError: There is nothing to learn from.
    """
    if not any(one.measurements for one in samples):
        raise TrainingError("there are no measurements to train on; collect some with ov-autoplace collect")
    with torch_threads(settings.threads):
        return _train(samples, settings, progress)


def _train(samples: Sequence[CostSamples], settings: CostSettings, progress: Progress | None) -> CostNetwork:
    op_types = tuple(_common(samples, attrgetter("op_types")))
    alike = _alike(samples)
    of_files = _examples(samples, alike.tolist(), CostNetwork.untrained(op_types))
    networks = _balanced(of_files)
    members = []
    for member in range(settings.members):
        seed = settings.seed * settings.members + member
        torch.manual_seed(seed)
        model = _Model(len(op_types), alike, settings)
        for epoch, loss in enumerate(_epochs(model, networks, np.random.default_rng(seed), settings)):
            if progress is not None:
                done = member * settings.epochs + epoch + 1
                progress(done, settings.members * settings.epochs, f"loss {loss:.4f}")
        members.append(model.weights())
    weights = {name: np.stack([member[name] for member in members]) for name in members[0]}
    known = [of_setting for one in samples for of_setting in one.known]
    devices = [device for of_setting in known for device, _ in of_setting]
    descriptors = np.stack([descriptor(device) for device in devices])
    kinds = [
        _kind(own, way) for own, ways in zip(alike.tolist(), known, strict=True) for way in range(len(ways))
    ]
    about = {
        "package": __version__,
        "settings": asdict(settings),
        "messages": message_library(),
        "networks": sum(map(len, of_files)),
        "measurements": sum(len(one.measurements) for one in samples),
        "devices": [setting.name for one in samples for setting in one.settings],
    }
    kernels = frozenset(_common(samples, kernels_of))
    rows, generations = np.array(kinds, dtype=np.int32), tuple(device.generation for device in devices)
    return CostNetwork(weights, op_types, kernels, descriptors, rows, generations, about)


def _epochs(
    model: _Model,
    networks: Sequence[_Measured],
    random: np.random.Generator,
    settings: CostSettings,
) -> Iterator[float]:
    """Train a member, and tell the mean loss of each epoch; at the end it has the averages of its weights."""
    averaged = torch.optim.swa_utils.AveragedModel(
        model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(settings.average)
    )
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay
    )
    per_epoch = -(-len(networks) // settings.networks_per_step)
    steps = settings.epochs * per_epoch
    # It divides by the length of its warm-up, which must not be 0.
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, settings.learning_rate, total_steps=max(steps, 11), pct_start=min(0.1, 100 / steps)
    )
    for _ in range(settings.epochs):
        order, losses = random.permutation(len(networks)), []
        for begin in range(0, len(order), settings.networks_per_step):
            batch = [networks[i] for i in order[begin : begin + settings.networks_per_step]]
            loss = _loss(model, batch, random, settings)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            averaged.update_parameters(model)
            losses.append(loss.item())
        yield float(np.mean(losses))
    model.load_state_dict(averaged.module.state_dict())


def _alike(samples: Sequence[CostSamples]) -> Tensor:
    """A number for each setting of all files, ``int64[S]``; those that differ only in their hour share it.

    With the way in which the device is known, it tells the kind.
    """
    number: dict[tuple[int, tuple[str, str, int]], int] = {}
    settings = [(n, setting.without_hour) for n, one in enumerate(samples) for setting in one.settings]
    return torch.tensor([number.setdefault(own, len(number)) for own in settings])


def _common(samples: Sequence[CostSamples], seen_in: Callable[[OpGraph], Iterable[_Seen]]) -> list[_Seen]:
    """What occurs in enough networks to be learned, sorted."""
    networks = [network for one in samples for network in one.networks]
    count = Counter(seen for network in networks for seen in set(seen_in(network.ops)))
    return sorted(seen for seen, times in count.items() if times >= _RARE)


def _balanced(of_files: Sequence[Sequence[_Measured]]) -> list[_Measured]:
    """The networks of all files, those of small files several times.

    Otherwise a kind of machine on which few networks were measured would hardly be learned. The root of how
    much smaller a file is lies between that and giving each of its networks too much weight.
    """
    largest = max(map(len, of_files))
    found: list[_Measured] = []
    for networks in of_files:
        found += round(math.sqrt(largest / max(len(networks), 1))) * list(networks)
    return found


def _examples(
    samples: Sequence[CostSamples], alike: Sequence[int], network: CostNetwork
) -> list[list[_Measured]]:
    """By file, network and setting, what each profile makes of it that a user may have of the device."""
    found: list[list[_Measured]] = []
    before = 0
    for one in samples:
        by_network: list[_Measured] = [[] for _ in one.networks]
        for measurement in one.comparable:
            ops = one.networks[measurement.network].ops
            if not len(measurement.kernel_seconds) or not len(ops):
                continue
            rows, setting = network.rows(ops.op_types), before + measurement.setting
            by_network[measurement.network].append(
                [
                    _Example(
                        setting,
                        _kind(alike[setting], way),
                        OpInputs.of(ops, device),
                        rows,
                        measurement.kernel_of,
                        measurement.kernel_seconds,
                        measurement.seconds,
                        launch,
                    )
                    for way, (device, launch) in enumerate(one.known[measurement.setting])
                ]
            )
        found.append([settings for settings in by_network if settings])
        before += len(one.settings)
    return found


def _loss(
    model: _Model,
    batch: Sequence[_Measured],
    random: np.random.Generator,
    settings: CostSettings,
) -> Tensor:
    """Error of kernels, of whole models, and of the ratio between settings of one model."""
    examples, group, kinds = [], [], []
    for number, measured in enumerate(batch):
        # Settings are compared by a user who knows all of them in the same way.
        known, is_told = int(random.integers(_WAYS)), random.random() >= settings.dropout
        for targets in measured:
            example = targets[known % len(targets)]
            inputs = example.inputs.disturbed(random, settings.noise, settings.dropout)
            examples.append(replace(example, inputs=inputs))
            group.append(number)
            kinds.append(example.kind if is_told else 0)
    offsets = np.cumsum([0, *(len(e.rows) for e in examples)])
    rows = torch.from_numpy(np.concatenate([e.rows for e in examples]))
    values = torch.from_numpy(np.concatenate([e.inputs.values for e in examples]))
    edges = np.concatenate(
        [e.inputs.edges.astype(np.int64) + offset for e, offset in zip(examples, offsets[:-1], strict=True)]
    )
    topology = Topology(torch.from_numpy(edges[:, 0].copy()), torch.from_numpy(edges[:, 1].copy()), len(rows))
    owner = torch.from_numpy(np.repeat(np.arange(len(examples)), np.diff(offsets)))
    correction, gate, doubt = model(rows, values, topology, torch.tensor(kinds)[owner])
    base = torch.from_numpy(np.concatenate([e.inputs.seconds for e in examples]).astype(np.float32))
    seconds = base * torch.exp(correction + gate)

    launch = torch.tensor([e.launch for e in examples], dtype=torch.float32)
    slowness = model.slowness()
    speed = torch.exp(-slowness[torch.tensor([e.setting for e in examples])])
    truth = speed * torch.tensor([e.seconds for e in examples], dtype=torch.float32)
    total = torch.zeros(len(examples)).index_add(0, owner, seconds)
    error = torch.log((total + launch) / truth)
    share = (seconds / total.clamp(min=1e-9)[owner]).detach()
    uncertain = torch.zeros(len(examples)).index_add(0, owner, share * doubt)
    doubting = (error.detach().abs() * torch.exp(-uncertain) + uncertain).mean()

    kernel, kernel_truth, kernel_owner, start = [], [], [], 0
    for number, e in enumerate(examples):
        kernel.append(np.where(e.kernel_of >= 0, e.kernel_of + start, -1))
        kernel_truth.append(e.kernel_seconds)
        kernel_owner.append(np.full(len(e.kernel_seconds), number))
        start += len(e.kernel_seconds)
    kernel_of = torch.from_numpy(np.concatenate(kernel).astype(np.int64))
    runs = kernel_of >= 0
    predicted = torch.zeros(start).index_add(0, kernel_of[runs], seconds[runs])
    of = torch.from_numpy(np.concatenate(kernel_owner))
    true = speed[of] * torch.from_numpy(np.concatenate(kernel_truth).astype(np.float32))
    off = torch.log((predicted + _DISPATCH) / (true + _DISPATCH)).abs()
    weight = (true / truth[of]).detach() + 1.0 / torch.bincount(of, minlength=len(examples))[of]
    fine = torch.zeros(len(examples)).index_add(0, of, weight * off).mean()
    # What the device does not run at all takes none of the time.
    idle = torch.zeros(len(examples)).index_add(0, owner[~runs], seconds[~runs]) / truth.detach()

    groups = torch.tensor(group)
    means = torch.zeros(len(batch)).index_add(0, groups, error) / torch.bincount(groups, minlength=len(batch))
    ratio = (error - means[groups]).abs().mean()
    off_by = torch.maximum(_TOO_LONG * error, -_TOO_SHORT * error).mean()
    whole = _WHOLE * off_by + _FINE * fine + idle.mean()
    apart = (model.kind.square() + model.head_kind.square()).sum(dim=1).mean()
    compared = _RATIO * ratio + _DOUBT * doubting
    return whole + compared + _SPEED * slowness.square().mean() + _KINDS * apart
