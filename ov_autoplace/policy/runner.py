"""Running a policy: numpy and OpenVINO only, no torch."""

from __future__ import annotations

import logging
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import numpy as np
import openvino as ov
from numpy.typing import NDArray

from ov_autoplace._base.arrays import IntArray
from ov_autoplace.cost.liveness import MEMORY_TOLERANCE
from ov_autoplace.errors import CheckpointError, PlacementError
from ov_autoplace.policy.card import (
    CONSTANTS,
    GRAPH,
    NO_POLICY,
    Card,
    load_card,
    read_file,
    shipped_checkpoint,
)
from ov_autoplace.policy.features import PolicyGraph
from ov_autoplace.policy.inference import compile_network, compute_scores

__all__ = ["PolicyRunner", "choose", "draw", "find_policy"]

_log = logging.getLogger("ov_autoplace")

_KEPT = 4  # compiled networks; a fine-tuned checkpoint is usually compared with the one it came from

_lock = threading.Lock()
_compiled: OrderedDict[str, tuple[ov.CompiledModel, ...]] = OrderedDict()


class PolicyRunner:
    """A checkpoint's policy. It is compiled at its first use, once per process, and may be used by threads.

    Args:
        checkpoint: A folder; ``None`` or ``"base"`` is the one that comes with the package.

    Attributes:
        card: The checkpoint's card.

    Raises:
        CheckpointError: The checkpoint cannot be used.
    """

    def __init__(self, checkpoint: str | os.PathLike[str] | None = None) -> None:
        self.card: Card = load_card(checkpoint)
        if GRAPH not in self.card.files:
            raise CheckpointError(
                f"the checkpoint {self.card.folder} can be trained but not used for placing: a network of "
                f"kind {self.card.name!r} runs with torch only; use 'base' or one that was tuned from it"
            )
        self._content = read_file(self.card, GRAPH), read_file(self.card, CONSTANTS)

    def check_devices(self, count: int) -> None:
        """Refuse a number of devices that the policy was not made for.

        Raises:
            CheckpointError: It decides between fewer devices.
        """
        most, exactly = self.card.max_devices, self.card.num_devices
        if (most is not None and count > most) or (exactly is not None and count != exactly):
            known = f"exactly {exactly}" if exactly is not None else f"up to {most}"
            raise CheckpointError(
                f"the policy of {self.card.folder} was trained for {known} devices and cannot place on "
                f"{count}; name fewer devices, or set the policy to 'none'"
            )

    @property
    def is_compiled(self) -> bool:
        """Whether this process compiled the network before, so that asking it takes a tenth of a second."""
        with _lock:
            return self.card.digest in _compiled

    @contextmanager
    def compiled_ahead(self) -> Iterator[Callable[[], None]]:
        """Compile in the background, which takes a second or two on another core.

        Whoever measures anything waits first, by calling what this yields. What goes wrong is told by
        :meth:`scores`. However the block is left, the thread has ended then: OpenVINO crashes when the
        interpreter ends while it compiles, so the interpreter waits for it too.
        """
        ended = threading.Event()

        def compile_quietly() -> None:
            try:
                with suppress(CheckpointError):
                    self._network()
            finally:
                ended.set()

        threading.Thread(target=compile_quietly, name="ov-autoplace policy").start()
        try:
            yield lambda: _wait(ended)
        finally:
            _wait(ended)

    def scores(self, graph: PolicyGraph) -> NDArray[np.float32]:
        """How good each of D devices is for each of N units, ``float32[N, D]``; ``-inf`` = forbidden.

        Raises:
            CheckpointError: The policy cannot place on so many devices, or its network cannot be run.
        """
        self.check_devices(graph.num_devices)
        return compute_scores(self._network(), graph, str(self.card.folder))

    def greedy(self, graph: PolicyGraph) -> IntArray:
        """The device with the highest score of each unit, ``int32[N]``; see :meth:`sample`."""
        return choose(self.scores(graph), graph)

    def sample(self, graph: PolicyGraph, k: int, seed: int = 0, temperature: float = 1.0) -> IntArray:
        """Draw from the policy: every unit on its own, with probabilities ``softmax(scores / temperature)``.

        Memory limits are kept by masking: where the answer would overfill a device, units are decided one
        after the other in topological order, and a device without room for a unit counts as forbidden for it.
        Where that leaves a unit without a device, they are decided again from the largest to the smallest.

        Args:
            graph: N units.
            k: How many answers.
            seed: Equal seeds draw equal answers.
            temperature: Above 0; small values come close to :meth:`greedy`.

        Returns:
            ``int32[k, N]``.

        Raises:
            PlacementError: Masking found no placement that keeps within the memory limits.
            CheckpointError: See :meth:`scores`.
        """
        return draw(self.scores(graph), graph, k, seed, temperature)

    def _network(self) -> tuple[ov.CompiledModel, ...]:
        key = self.card.digest
        with _lock:
            if key not in _compiled:
                _compiled[key] = compile_network(*self._content, str(self.card.folder))
                while len(_compiled) > _KEPT:
                    _compiled.popitem(last=False)
            _compiled.move_to_end(key)
            return _compiled[key]


def _wait(ended: threading.Event) -> None:
    """Wait for a thread, and let Ctrl-C, however often it comes, interrupt only afterwards.

    Not by joining it: CPython takes a thread for ended whose joining was interrupted.
    """
    interrupted: KeyboardInterrupt | None = None
    while not ended.is_set():
        try:
            ended.wait()
        except KeyboardInterrupt as cause:
            interrupted = cause
    if interrupted is not None:
        raise interrupted


def find_policy(asked: str | None, num_devices: int) -> PolicyRunner | None:
    """The policy for a request, or ``None`` when it has none.

    Args:
        asked: Folder of a checkpoint, ``"base"``, ``"none"``, or ``None`` for the one that comes with the
            package, where there is one and it knows so many devices.
        num_devices: With fewer than two there is nothing to decide.

    Raises:
        CheckpointError: The policy that was asked for cannot be used.
    """
    if asked == NO_POLICY or num_devices < 2:
        return None
    if asked is None and shipped_checkpoint() is None:
        _log.debug("no policy proposes placements: none comes with this installation")
        return None
    try:
        policy = PolicyRunner(asked)
    except CheckpointError as cause:
        if asked is not None:
            raise
        _log.warning("no policy proposes placements: %s", cause)
        return None
    try:
        policy.check_devices(num_devices)
    except CheckpointError as cause:
        if asked is not None:
            raise
        _log.debug("no policy proposes placements: %s", cause)
        return None
    return policy


def draw(
    scores: NDArray[np.float32], graph: PolicyGraph, k: int, seed: int = 0, temperature: float = 1.0
) -> IntArray:
    """Answers drawn from given scores, ``int32[k, N]``; see :meth:`PolicyRunner.sample`."""
    random = np.random.default_rng(seed)
    answers = np.empty((k, len(graph)), dtype=np.int32)
    for row in answers:
        # The largest of scores with Gumbel noise is a draw from their softmax.
        row[:] = choose(scores / temperature + random.gumbel(size=scores.shape), graph)
    return answers


def choose(scores: NDArray[np.floating], graph: PolicyGraph) -> IntArray:
    """The allowed device with the highest score of each unit, within memory limits, ``int32[N]``."""
    scores = np.where(graph.allowed, scores, -np.inf)
    free: IntArray = scores.argmax(axis=1).astype(np.int32)
    units = graph.problem.units
    held = np.bincount(free, units.packing_bytes, graph.num_devices)
    if (held <= units.memory_capacity * MEMORY_TOLERANCE).all():
        return free
    in_order = np.arange(len(graph))
    for order in (in_order, np.argsort(-units.packing_bytes, kind="stable")):
        chosen = _masked(scores, graph, order)
        if chosen is not None:
            return chosen
    limits = ", ".join(f"{limit:.0f}" for limit in units.memory_capacity)
    raise PlacementError(f"the policy found no placement within the memory limits of {limits} bytes")


def _masked(scores: NDArray[np.floating], graph: PolicyGraph, order: NDArray[np.integer]) -> IntArray | None:
    units = graph.problem.units
    room = (units.memory_capacity * MEMORY_TOLERANCE).tolist()
    size = units.packing_bytes.tolist()
    preferred = np.argsort(-scores, axis=1, kind="stable").tolist()
    allowed = graph.allowed.tolist()
    chosen = np.empty(len(graph), dtype=np.int32)
    for unit in order.tolist():
        takes = (d for d in preferred[unit] if allowed[unit][d] and size[unit] <= room[d])
        device = next(takes, None)
        if device is None:
            return None
        room[device] -= size[unit]
        chosen[unit] = device
    return chosen
