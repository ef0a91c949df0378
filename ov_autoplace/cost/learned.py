"""A network that corrects the roofline by what was learned of ops, their neighbours and the device.

An op takes ``roofline x exp(correction) x gate``. The gate learns what a device fuses with something else and
does not run by itself. Ops exchange messages along the edges of the model, both ways::

    h = relu(embedding[type] + values W + kind)
    h = h + relu(h W_self + mean of producers' h W_in + mean of consumers' h W_out + b)    once per layer
    correction, gate, doubt = relu(h W_1 + b_1 + head kind) W_2 + b_2

What was learned of a kind of device alone, of its processor, threads and precision, and of what is known of
it, a calibration or what it tells of itself, are the two vectors of that kind. Training often leaves them
out, so that the network can do without them on what it has not seen.

Doubt is the logarithm of how far the logarithm of the whole is off, as the mean over its ops by their time.

Several such members, which differ in the weights that training began with, answer together by the means of
their logarithms: what each errs by alone cancels in part (deep ensembles: B. Lakshminarayanan, A. Pritzel and
C. Blundell, NeurIPS 2017).

It runs in NumPy: three products of small matrices per layer take less than compiling them would.
"""

from __future__ import annotations

import functools
import io
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ov_autoplace._base.arrays import FloatArray, IntArray
from ov_autoplace._base.files import read_arrays, write_atomically
from ov_autoplace.cost.analytic import Roofline, op_classes
from ov_autoplace.cost.features import DEVICE_FEATURES, OP_FEATURES, OpInputs, descriptor
from ov_autoplace.cost.op_graph import OpGraph
from ov_autoplace.cost.target import MEASURED, OP_CLASSES, DeviceProfile
from ov_autoplace.errors import CheckpointError

__all__ = ["CostNetwork", "Prediction", "kernels_of", "shipped_network"]

SCHEMA = 5
_SHIPPED = "autoplace-costs.npz"
MOST_CORRECTION = 6.0
"""Natural logarithm of the largest correction and doubt; what is larger is no estimate any more."""
# Distance from the nearest descriptor of training up to which a device is of that kind, as a root mean square
# over the features. Two calibrations of one processor are up to 0.05 apart.
_NEAR = 0.06
# Distance at which the network and the roofline of a CPU count the same. The roofline of what a device
# tells of itself is far off, that of a calibration is better. With a network of AMD's processors alone,
# estimates of Intel's were best where the network counted 0.75 to 1 up to a distance of 0.06, 0.75 up to
# 0.12 and 0.5 farther away, by what they tell, and 0.25 to 1, 0.5 and 0.25 by their calibrations.
_EQUAL_TOLD, _EQUAL_CALIBRATED = 0.3, 0.1
# So many times a distance is the logarithm of the factor by which they were typically off there. What is of
# no kind of training is at least too far from all, as processors of several generations may tell the same.
_OFF_BY_DISTANCE = 4.0
# The same of a model with an op that training has not seen. A device may have no fast kernel for it: f16 on
# CPUs had none for transposed convolutions of one dimension, and estimates were 46 times too short.
_OFF_BY_UNSEEN = 0.5
_PLAIN = ("elementwise", "copy")  # classes of ops that every device has fast kernels for


@dataclass(frozen=True, eq=False)
class Prediction:
    """What N ops are predicted to take.

    Attributes:
        seconds: Of each op, ``float64[N]``; those of ops that a device fuses add up to what the kernel takes.
        doubt: By which factor the whole is typically off; 1 = not at all, or nobody knows.
    """

    seconds: FloatArray
    doubt: float


@dataclass(frozen=True, eq=False)
class CostNetwork:
    """Weights, and what they were trained on.

    Attributes:
        weights: By name, each of all M members: ``float32[M, ...]``.
        op_types: Known op types; the embedding's first row is any other's.
        kernels: What training has seen of :func:`kernels_of`.
        descriptors: Of the settings that were trained on, ``float32[S, len(DEVICE_FEATURES)]``.
        kinds: Row of each in the vectors of kinds, ``int32[S]``; the first row is any other's.
        generations: Of the processor of each, length S, see :class:`~ov_autoplace.cost.target.DeviceProfile`.
        about: How it was made, for whoever asks.
    """

    weights: Mapping[str, NDArray[np.float32]]
    op_types: tuple[str, ...]
    kernels: frozenset[tuple[str, int]]
    descriptors: NDArray[np.float32]
    kinds: IntArray
    generations: tuple[str, ...]
    about: Mapping[str, Any]

    @classmethod
    def untrained(cls, op_types: tuple[str, ...]) -> CostNetwork:
        """One that knows types of ops, and nothing else."""
        descriptors = np.empty((0, len(DEVICE_FEATURES)), np.float32)
        return cls({}, op_types, frozenset(), descriptors, np.empty(0, np.int32), (), {})

    @classmethod
    def load(cls, path: str | Path) -> CostNetwork:
        """Read a checkpoint.

        Raises:
            CheckpointError: It is none, or one for other features.
        """
        try:
            arrays = read_arrays(path)
            card = json.loads(str(arrays["card"]))
            if card["schema"] != SCHEMA or card["features"] != [*OP_FEATURES, *DEVICE_FEATURES]:
                raise CheckpointError(
                    f"{path} was trained for other features than those of this release; use its own, "
                    "or train it anew with ov-autoplace pretrain"
                )
            weights = {k.removeprefix("weights."): v for k, v in arrays.items() if k.startswith("weights.")}
            descriptors = np.asarray(arrays["descriptors"], dtype=np.float32)
            kinds = np.asarray(arrays["kinds"], dtype=np.int32)
            kernels = frozenset((str(op_type), int(rank)) for op_type, rank in card["kernels"])
            op_types, generations = tuple(card["op_types"]), tuple(card["generations"])
            if not len(descriptors) == len(kinds) == len(generations):
                raise ValueError("what it says of devices is not of equally many")
            return cls(weights, op_types, kernels, descriptors, kinds, generations, card["about"])
        except (KeyError, ValueError, TypeError) as cause:
            raise CheckpointError(f"{path} is no network of costs: {cause}") from cause

    @functools.cached_property
    def _row_of(self) -> dict[str, int]:
        return {op_type: i + 1 for i, op_type in enumerate(self.op_types)}

    def rows(self, op_types: tuple[str, ...]) -> IntArray:
        """Rows of the embedding, ``int64[N]``."""
        return np.array([self._row_of.get(op_type, 0) for op_type in op_types], dtype=np.int64)

    def knows(self, device: DeviceProfile) -> bool:
        """Whether it can say anything of a device: of every CPU, and of others that training has seen."""
        return bool(len(self.descriptors)) and (device.threads > 0 or self.kind(device) > 0)

    def kind(self, device: DeviceProfile) -> int:
        """Row of a device in the vectors of kinds; 0 where training has not seen it."""
        return self._nearest(device)[1]

    def _nearest(self, device: DeviceProfile) -> tuple[float, int]:
        """Distance from the nearest of its kind, or of all that training has seen, and :meth:`kind`.

        Processors that tell the same of themselves are of one kind only if they are of one generation.
        """
        if not len(self.descriptors):
            return math.inf, 0
        distances = np.sqrt(np.square(self.descriptors - descriptor(device)).mean(axis=1))
        is_own = np.array([generation == device.generation for generation in self.generations])
        own = np.where(is_own, distances, math.inf)
        if own.min() <= _NEAR:
            return float(own.min()), int(self.kinds[own.argmin()])
        return float(distances.min()), 0

    def predict(self, ops: OpGraph, device: DeviceProfile) -> Prediction:
        """What ops take on a device, with the launch left out.

        The less a device is like those that training has seen, the nearer the whole is to the roofline, and
        the more it is doubted; and so is a model with ops that training has not seen.
        """
        inputs = OpInputs.of(ops, device)
        distance, kind = self._nearest(device)
        correction, gate, doubt = (one.mean(axis=0) for one in self.forward(inputs, kind))
        seconds = inputs.seconds * np.exp(correction + gate)
        total = float(seconds.sum())
        share = seconds / total if total > 0 else seconds
        if not kind and total > 0:
            roofline = float(Roofline.of(ops, device).seconds.sum())
            seconds = seconds * (roofline / total) ** _weight_of_roofline(device, distance)
        off = math.exp(share @ doubt) + _OFF_BY_DISTANCE * (distance if kind else max(distance, _NEAR))
        if not (self._row_of.keys() >= set(ops.op_types) and self.kernels >= kernels_of(ops)):
            off += _OFF_BY_UNSEEN
        return Prediction(seconds, math.exp(min(off, MOST_CORRECTION)))

    def save(self, path: str | Path) -> None:
        """Write a checkpoint that :meth:`load` reads: arrays and a card, nothing that is executed.

        Raises:
            OutputError: It cannot be written.
        """
        card = {
            "schema": SCHEMA,
            "features": [*OP_FEATURES, *DEVICE_FEATURES],
            "op_types": self.op_types,
            "kernels": sorted(self.kernels),
            "generations": self.generations,
            "about": self.about,
        }
        buffer = io.BytesIO()
        arrays: dict[str, Any] = {f"weights.{name}": value for name, value in self.weights.items()}
        arrays |= {
            "card": np.array(json.dumps(card)),
            "descriptors": self.descriptors,
            "kinds": self.kinds,
        }
        np.savez_compressed(buffer, **arrays)
        write_atomically(path, buffer.getvalue())

    def forward(self, inputs: OpInputs, kind: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Correction, logarithm of the gate, and doubt of each op by each member, ``float64[M, N]`` each.

        Args:
            inputs: Of N ops on a device.
            kind: Of the device, see :meth:`kind`.
        """
        w = self.weights
        producer, consumer = inputs.edges[:, 0], inputs.edges[:, 1]
        own_kind = w["kind"][:, kind, None]
        h = _relu(w["embedding"][:, self.rows(inputs.op_types)] + inputs.values @ w["values"] + own_kind)
        for layer in range(sum(name.endswith(".self") for name in w)):
            own, read, write, bias = (w[f"{layer}.{part}"] for part in ("self", "in", "out", "bias"))
            received = _means(h @ read, producer, consumer) + _means(h @ write, consumer, producer)
            h = h + _relu(h @ own + received + bias[:, None])
        h = _relu(h @ w["head.0"] + w["head.0.bias"][:, None] + w["head.kind"][:, kind, None])
        out = (h @ w["head.1"] + w["head.1.bias"][:, None]).astype(np.float64)
        correction = np.clip(out[..., 0], -MOST_CORRECTION, MOST_CORRECTION)
        return correction, -np.logaddexp(0.0, -out[..., 1]), out[..., 2]


def _weight_of_roofline(device: DeviceProfile, distance: float) -> float:
    """What the roofline counts beside the network, of 1, at a distance from all that training has seen."""
    is_calibrated = device.rate(OP_CLASSES[0]).source.startswith(MEASURED)
    return distance / (distance + (_EQUAL_CALIBRATED if is_calibrated else _EQUAL_TOLD))


def kernels_of(ops: OpGraph) -> frozenset[tuple[str, int]]:
    """What chooses the kernels of ops that do more than move or combine elements: their types and ranks."""
    classes = zip(ops.op_types, ops.shapes, op_classes(ops), strict=True)
    return frozenset((op_type, len(shape)) for op_type, shape, own in classes if own not in _PLAIN)


def _relu(x: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.maximum(x, 0.0)


def _means(values: NDArray[np.float32], source: IntArray, target: IntArray) -> NDArray[np.float32]:
    """Mean of the rows that each row receives, ``float32[M, N, H]``; 0 where there are none."""
    order = np.argsort(target, kind="stable")
    counts = np.bincount(target, minlength=values.shape[1])
    result = np.zeros_like(values)
    receives = np.flatnonzero(counts)
    if len(receives):
        starts = np.cumsum(counts) - counts
        sums = np.add.reduceat(values[:, source[order]], starts[receives], axis=1)
        result[:, receives] = sums / counts[receives, None].astype(np.float32)
    return result


@functools.cache
def shipped_network() -> CostNetwork:
    """The one that comes with the package, read once per process."""
    return CostNetwork.load(Path(__file__).with_name(_SHIPPED))
