"""Judges the network of costs that the package ships beside its rivals.

All are trained on the same files, without a tenth of the networks. Rivals are the roofline, a factor for
each op type (the way of nn-Meter: L. L. Zhang et al., MobiSys 2021, with the roofline for what varies
within a type), boosted trees over ops and what is around them, and the same network without messages. Only
``--held-out`` looks at the files whose networks nothing is trained on. ``--sure`` counts how often fewer
threads were slower than all where an estimate alone would have chosen them: the package's estimates on the
held-out files, and those of networks that were trained without a third of the families on that third.
``--unseen`` trains without each kind of machine, and judges on that.
"""

from __future__ import annotations

import argparse
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from ov_autoplace.cost.features import OpInputs
from ov_autoplace.cost.learned import CostNetwork, Prediction
from ov_autoplace.cost.op_graph import OpGraph
from ov_autoplace.cost.samples import CostSamples, Network
from ov_autoplace.cost.target import DeviceProfile
from ov_autoplace.decide.outlook import MOST_DOUBT, SURELY_FASTER, SURELY_SLOWER
from ov_autoplace.training.costs import train_costs
from ov_autoplace.training.judging import is_validation, judge
from ov_autoplace.training.settings import CostSettings

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "data" / "costs"
SHIPPED = ROOT / "ov_autoplace" / "cost" / "autoplace-costs.npz"
HELD_OUT = "held-out-"
"""Begins the names of files of networks that nothing is trained on."""

_THIRDS = 3
# Trees are grown on so many kernels, drawn from all: all of them do not fit the memory of a laptop.
_MOST_KERNELS = 1_000_000
_KNOWN = ("calibrated", "as it tells of itself", "calibrated on all threads", "as all threads tell")


@dataclass(frozen=True, eq=False)
class Kernels:
    """Ops as they are assumed to be fused: the N ops of a network on a device, and K of their kernels.

    Attributes:
        inputs: Of the ops.
        heads: First op of each kernel, ``int64[K]``.
        base: Roofline of its ops, ``float64[K]``.
    """

    inputs: OpInputs
    heads: NDArray[np.int64]
    base: NDArray[np.float64]

    @classmethod
    def of(cls, ops: OpGraph, device: DeviceProfile) -> Kernels:
        """All kernels of a network."""
        inputs, head = OpInputs.of(ops, device), ops.head
        heads = np.unique(head)
        return cls(inputs, heads, np.bincount(head, weights=inputs.seconds, minlength=len(ops))[heads])

    def spread(self, seconds: NDArray[np.float64]) -> Prediction:
        """What kernels take, each at its first op."""
        result = np.zeros(len(self.inputs.op_types))
        result[self.heads] = seconds
        return Prediction(result, 1.0)


class ByType:
    """A factor on the roofline for each op type."""

    def __init__(self, samples: Sequence[CostSamples]) -> None:
        """Learn the factors: medians over all kernels that begin with such an op."""
        logs: dict[str, list[float]] = {}
        for kernels, ran, seconds in _measured(samples):
            factors = np.log(seconds[ran] / kernels.base[ran])
            for head, factor in zip(kernels.heads[ran].tolist(), factors.tolist(), strict=True):
                logs.setdefault(kernels.inputs.op_types[head], []).append(factor)
        self._factor = {op_type: float(np.exp(np.median(values))) for op_type, values in logs.items()}

    def predict(self, ops: OpGraph, device: DeviceProfile) -> Prediction:
        """As the network's."""
        kernels = Kernels.of(ops, device)
        factors = [self._factor.get(ops.op_types[head], 1.0) for head in kernels.heads]
        return kernels.spread(kernels.base * np.array(factors))


class Boosted:
    """Boosted trees over what a kernel's first op shows, and its heaviest producer and consumer."""

    def __init__(self, samples: Sequence[CostSamples], seed: int) -> None:
        """Grow the trees."""
        from sklearn.ensemble import HistGradientBoostingRegressor

        types = {t for one in samples for n in one.networks for t in n.ops.op_types}
        self._row = {op_type: i for i, op_type in enumerate(sorted(types))}
        rows, targets, weights = [], [], []
        counts = (
            len(one.known[m.setting]) * len(m.kernel_seconds) for one in samples for m in one.comparable
        )
        random, share = np.random.default_rng(seed), _MOST_KERNELS / sum(counts)
        for kernels, every, seconds in _measured(samples):
            ran = every & (random.random(len(every)) < share)
            rows.append(self._features(kernels.inputs)[kernels.heads[ran]])
            targets.append(np.log(seconds[ran] / kernels.base[ran]))
            weights.append(seconds[ran] / max(seconds.sum(), 1e-9) + 1 / max(every.sum(), 1))
        self._trees = HistGradientBoostingRegressor(
            max_iter=400, learning_rate=0.08, max_leaf_nodes=63, random_state=seed, loss="absolute_error"
        )
        self._trees.fit(np.concatenate(rows), np.concatenate(targets), np.concatenate(weights))

    def _features(self, inputs: OpInputs) -> NDArray[np.float64]:
        kind = np.array([self._row.get(op_type, -1) for op_type in inputs.op_types], dtype=np.float64)
        own = np.column_stack([kind, inputs.values])
        heaviest = [np.full(len(own), -1), np.full(len(own), -1)]
        for producer, consumer in inputs.edges.tolist():
            for side, (at, other) in enumerate(((consumer, producer), (producer, consumer))):
                known = heaviest[side][at]
                if known < 0 or inputs.seconds[other] > inputs.seconds[known]:
                    heaviest[side][at] = other
        padded = np.vstack([own, np.full(own.shape[1], np.nan)])
        return np.column_stack([own, *(padded[side] for side in heaviest)])

    def predict(self, ops: OpGraph, device: DeviceProfile) -> Prediction:
        """As the network's."""
        kernels = Kernels.of(ops, device)
        factors = np.exp(self._trees.predict(self._features(kernels.inputs)[kernels.heads]))
        return kernels.spread(kernels.base * factors)


Measured = tuple[Kernels, NDArray[np.bool_], NDArray[np.float64]]


def _measured(samples: Sequence[CostSamples]) -> Iterator[Measured]:
    """Kernels, which of them ran, and what they took.

    What was measured of a kernel of the device is shared out to its ops by their rooflines.
    """
    for one in samples:
        for m in one.comparable:
            ops, runs = one.networks[m.network].ops, m.kernel_of >= 0
            for device, _ in one.known[m.setting]:
                kernels = Kernels.of(ops, device)
                own = kernels.inputs.seconds
                of_kernel = np.bincount(m.kernel_of[runs], own[runs], len(m.kernel_seconds))
                seconds = np.zeros(len(ops))
                seconds[runs] = (m.kernel_seconds / of_kernel)[m.kernel_of[runs]] * own[runs]
                by_head = np.bincount(ops.head, seconds, len(ops))[kernels.heads]
                yield kernels, by_head > 0, by_head


Rival = CostNetwork | ByType | Boosted | None


def show(title: str, samples: CostSamples, rivals: Mapping[str, Rival]) -> None:
    """A line for each rival and each way in which a device may be known."""
    columns = ("rival", "device", "typical", "p90 error", "worst", "rank", "ratio error", "regret")
    table = Table(*columns, title=title)
    for known, name in enumerate(_KNOWN):
        for rival, network in rivals.items():
            judged = judge(samples, network, known)
            if not len(judged.factors):
                continue
            s = judged.summary()
            table.add_row(
                rival,
                name,
                f"{s['typical']:.3f}",
                f"{100 * s['p90_error']:.0f} %",
                f"{s['worst']:.2f}",
                f"{s['rank']:.2f}",
                f"{100 * s['ratio_error']:.1f} %",
                f"{s['regret']:.3f}, {s['worst_regret']:.2f}",
            )
    Console(width=120).print(table)


def show_unseen(collected: Mapping[str, CostSamples], held_out: Sequence[Path], seed: int) -> None:
    """How far networks are off on a kind of machine that they were trained without, each of one member."""
    for path in held_out:
        own = path.stem.removeprefix(HELD_OUT)
        others = [samples for kind, samples in collected.items() if kind != own]
        trained = train_costs(others, CostSettings(seed=seed, members=1), progress=_print_progress)
        rivals: dict[str, Rival] = {"roofline": None, "network": trained}
        show(f"{path.stem}, not trained on", CostSamples.load(path), rivals)


def without_a_third(collected: Sequence[CostSamples]) -> Iterator[tuple[CostNetwork, list[CostSamples]]]:
    """Networks of costs, each trained without a third of all families but random ones, and that third.

    Each has one member, which errs more than several do, and takes a quarter of the time.
    """
    for third in range(_THIRDS):

        def is_left_out(network: Network, third: int = third) -> bool:
            return network.family != "random" and zlib.crc32(network.family.encode()) % _THIRDS == third

        training = [one.part(lambda network: not is_left_out(network)) for one in collected]
        trained = train_costs(training, CostSettings(members=1), progress=_print_progress)
        yield trained, [one.part(is_left_out) for one in collected]


def shares(samples: CostSamples, network: CostNetwork) -> list[tuple[float, float]]:
    """What fewer threads were expected to take of the time of all, and what they took.

    A device is known as it tells of itself, on all threads; the expected share is infinite where the network
    doubts it, or does not know the device.
    """
    runs: dict[tuple[int, str, str], list[tuple[int, DeviceProfile, float]]] = {}
    for m in samples.comparable:
        setting, device = samples.settings[m.setting], samples.known[m.setting][-1][0]
        runs.setdefault((m.network, setting.device, device.precision), []).append(
            (device.threads or 0, device, m.seconds)
        )
    found = []
    for (number, _, _), own in runs.items():
        *narrow, (_, widest, whole) = sorted(own, key=itemgetter(0))
        ops = samples.networks[number].ops
        for _, device, seconds in narrow:
            one, other = network.predict(ops, device), network.predict(ops, widest)
            is_known = network.knows(device) and network.knows(widest)
            is_sure = is_known and max(one.doubt, other.doubt) < MOST_DOUBT
            expected = float(one.seconds.sum() / other.seconds.sum()) if is_sure else np.inf
            found.append((expected, seconds / whole))
    return found


def show_sure(title: str, found: Sequence[tuple[float, float]]) -> None:
    """How often fewer threads took as much as all, by the share that was expected."""
    columns = ("expected share", "measured", "slower than 1.02", "above 0.98", "longest")
    table = Table(*columns, title=title)
    for least, below in pairwise((0.0, 0.5, SURELY_FASTER, 0.8, 1.0, SURELY_SLOWER, 100.0)):
        took = np.array([share for expected, share in found if least <= expected < below])
        if len(took):
            counts = (len(took), int((took > 1.02).sum()), int((took > 0.98).sum()))
            table.add_row(f"{least:.2f} to {below:.2f}", *map(str, counts), f"{took.max():.2f}")
    Console(width=120).print(table)


def main(arguments: list[str]) -> None:
    """Train the rivals, and judge all of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of collected files")
    parser.add_argument("--network", type=Path, default=SHIPPED, help="what ov-autoplace pretrain wrote")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rivals", action="store_true", help="train the rivals, too")
    parser.add_argument("--held-out", action="store_true", help="judge on the held-out files as well")
    parser.add_argument("--sure", action="store_true", help="count how often what is not measured is wrong")
    parser.add_argument("--unseen", action="store_true", help="judge on machines that are not trained on")
    given = parser.parse_args(arguments)
    files = sorted(given.data.glob("*.npz"))
    kinds = {path.stem: CostSamples.load(path) for path in files if not path.name.startswith(HELD_OUT)}
    collected = list(kinds.values())
    is_looked_at = given.held_out or given.unseen
    held_out = [path for path in files if path.name.startswith(HELD_OUT)] if is_looked_at else []
    if given.unseen:
        show_unseen(kinds, held_out, given.seed)
        return
    if given.sure:
        shipped = CostNetwork.load(given.network)
        for path in held_out:
            show_sure(path.stem, shares(CostSamples.load(path), shipped))
        thirds = without_a_third(collected)
        found = [share for network, left_out in thirds for one in left_out for share in shares(one, network)]
        show_sure("families that were not trained on", found)
        return
    rivals: dict[str, Rival] = {"roofline": None, "network": CostNetwork.load(given.network)}
    if given.rivals:
        training = [one.part(lambda network: not is_validation(network)) for one in collected]
        alone = CostSettings(seed=given.seed, layers=0)
        rivals |= {
            "a factor by type": ByType(training),
            "boosted trees": Boosted(training, given.seed),
            "without messages": train_costs(training, alone, progress=_print_progress),
        }
    for one in collected:
        show(f"validation of {one.settings[0].device}", one.part(is_validation), rivals)
    for path in held_out:
        show(path.stem, CostSamples.load(path), rivals)


def _print_progress(done: int, total: int, text: str) -> None:
    print(f"{done}/{total}: {text}")


if __name__ == "__main__":
    main(sys.argv[1:])
