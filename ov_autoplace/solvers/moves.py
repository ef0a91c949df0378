"""Large moves between devices, each the best of exponentially many and found by one minimum cut.

* Swap: the units on two devices are shared out anew between the two; everything else stays. The cut is
  exact for any transfer costs, so with two devices one swap is the minimum of the relaxed objective.
* Expansion: every unit may stay or change to one given device. Exact when transfers obey the triangle
  inequality through that device. Where they do not, the excess is charged whether or not it arises, which
  is exact for "nobody moves": the cut then bounds the cost from above and still never makes things worse.

Boykov, Veksler and Zabih, "Fast Approximate Energy Minimization via Graph Cuts", 2001.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ov_autoplace._base.arrays import FloatArray, IntArray, rows_of
from ov_autoplace.problem.units import UnitGraph
from ov_autoplace.solvers.network import SINK, SOURCE, Stars, minimum_cut

__all__ = ["Move", "Moved", "all_moves", "expand", "share_out", "swap"]


@dataclass(frozen=True, eq=False)
class Moved:
    """What a move leads to.

    Attributes:
        assignments: Assignments of units, ``int32[U]``, that are equally cheap for the cut.
        lower_bound: Proven lower bound of the relaxed objective over everything that the cut chose from;
            not one for an expansion whose transfers break the triangle inequality.
    """

    assignments: tuple[IntArray, ...]
    lower_bound: float


Move = Callable[[UnitGraph, IntArray], Moved]


def all_moves(devices: list[int]) -> list[Move]:
    """Expansions to every device, then swaps of every pair."""
    pairs = [(a, b) for i, a in enumerate(devices) for b in devices[i + 1 :]]
    moves: list[Move] = [partial(expand, target=d) for d in devices]
    return moves + [partial(swap, first=a, second=b) for a, b in pairs]


def expand(units: UnitGraph, device: IntArray, *, target: int) -> Moved:
    """Let every unit stay or change to ``target``."""
    may_move = np.isfinite(units.op_seconds[:, target])
    return _relabel(units, device, np.where(may_move, target, device).astype(np.int32))


def swap(units: UnitGraph, device: IntArray, *, first: int, second: int) -> Moved:
    """Share out the units on ``first`` and ``second`` anew between these two devices."""
    active = (device == first) | (device == second)
    may = np.isfinite(units.op_seconds)
    stay = np.where(active & may[:, first], first, device)
    change = np.where(active & may[:, second], second, device)
    return _relabel(units, stay.astype(np.int32), change.astype(np.int32))


def share_out(units: UnitGraph, first: int, second: int) -> Moved:
    """The minimum of the relaxed objective over all placements on two devices.

    Every unit must be allowed on one of them.
    """
    everywhere = np.where(np.isfinite(units.op_seconds[:, first]), first, second)
    return swap(units, everywhere.astype(np.int32), first=first, second=second)


def _relabel(units: UnitGraph, stay: IntArray, change: IntArray) -> Moved:
    """Choose for every unit between two devices, which may be the same one.

    No device may occur both among ``stay`` and among ``change`` of units that have a choice.
    """
    U = np.arange(len(units))
    has_choice = stay != change
    active = np.flatnonzero(has_choice)
    node = np.full(len(units), SOURCE, dtype=np.int64)
    node[active] = np.arange(len(active))
    stay_price, change_price = units.op_seconds[U, stay], units.op_seconds[U, change]
    stars = _tensor_prices(units, stay, change, node, stay_price, change_price)
    cut = minimum_cut(stay_price[active], change_price[active], stars)
    assignments = []
    for side in (cut.smallest, cut.largest):
        chosen = stay.copy()
        chosen[active] = np.where(side, stay[active], change[active])
        assignments.append(chosen)
    return Moved(
        assignments=_distinct(assignments),
        lower_bound=cut.lower_bound + float(stay_price[~has_choice].sum()),
    )


def _tensor_prices(
    units: UnitGraph,
    stay: IntArray,
    change: IntArray,
    node: NDArray[np.integer],
    stay_price: FloatArray,
    change_price: FloatArray,
) -> list[Stars]:
    """Stars for the transfers; what depends on the producer alone is added to its prices in place.

    One item per tensor, device and kind of consumer: those that are on the device anyway (0), if they
    stay (1), if they change (2).
    """
    D = units.num_devices
    tensor = rows_of(units.offsets)
    chooses = stay[units.consumers] != change[units.consumers]
    key = np.concatenate(
        [
            (tensor * D + stay[units.consumers]) * 3 + chooses,
            ((tensor * D + change[units.consumers]) * 3 + 2)[chooses],
        ]
    )
    members = np.concatenate([units.consumers, units.consumers[chooses]])
    order = np.argsort(key, kind="stable")
    starts = np.flatnonzero(np.diff(key[order], prepend=-1))
    lengths = np.diff(starts, append=len(key))
    item = key[order][starts]
    tensor, receiver, kind = item // (3 * D), item // 3 % D, item % 3
    # A tensor is moved anyway when a consumer without a choice is there: the rest adds nothing.
    fixed_before = np.zeros(len(item), dtype=np.bool_)
    fixed_before[1:] = (kind[:-1] == 0) & (item[1:] // 3 == item[:-1] // 3)

    producer = units.producer[tensor]
    if_stays = _prices(units, tensor, stay[producer], receiver)
    if_changes = _prices(units, tensor, change[producer], receiver)
    common = np.minimum(if_stays, if_changes)
    always, on_stay, on_change = (~fixed_before & (kind == k) for k in range(3))
    # Not a cut's business: the excess when producer and consumers would have to be on the same side.
    np.add.at(stay_price, producer[always], if_stays[always])
    np.add.at(change_price, producer[always], if_changes[always])
    np.add.at(stay_price, producer[on_stay], (if_stays - common)[on_stay])
    np.add.at(change_price, producer[on_change], (if_changes - common)[on_change])

    stars = []
    nodes = node[members[order]]
    nothing = np.zeros(len(item))
    for chosen, head, leaving, entering in (
        (on_stay, np.full(len(item), SINK), nothing, common),
        (on_stay, node[producer], nothing, if_changes - common),
        (on_change, np.full(len(item), SOURCE), common, nothing),
        (on_change, node[producer], if_stays - common, nothing),
    ):
        chosen = chosen & (leaving + entering > 0)
        stars.append(
            Stars(
                head=head[chosen],
                members=nodes[np.repeat(chosen, lengths)],
                lengths=lengths[chosen],
                leaving=leaving[chosen],
                entering=entering[chosen],
            )
        )
    return stars


def _prices(
    units: UnitGraph, tensor: NDArray[np.integer], sender: IntArray, receiver: NDArray[np.integer]
) -> FloatArray:
    """Seconds to move tensors between given devices; nothing on one device."""
    rate = units.transfer_seconds_per_byte[sender, receiver]
    seconds = units.transfer_latency[sender, receiver] + rate * units.tensor_bytes[tensor]
    return np.where(sender == receiver, 0.0, seconds)


def _distinct(assignments: list[IntArray]) -> tuple[IntArray, ...]:
    first, second = assignments
    return (first,) if np.array_equal(first, second) else (first, second)
