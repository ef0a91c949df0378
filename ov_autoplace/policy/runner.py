"""Running a policy: numpy and OpenVINO only, no torch."""

from __future__ import annotations

import logging
import os
import threading
from collections import OrderedDict

import numpy as np
from numpy.typing import NDArray

from ov_autoplace._base.arrays import IntArray
from ov_autoplace.errors import CheckpointError
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
from ov_autoplace.policy.inference import CompiledNetwork, compile_network, compute_scores
from ov_autoplace.policy.readout import draw, fitting_or_single

__all__ = ["PolicyRunner", "find_policy"]

_log = logging.getLogger("ov_autoplace")

_KEPT = 4  # compiled networks; a fine-tuned checkpoint is usually compared with the one it came from
_SMALL = 2_000  # units, after which the compiled network is kept: the next answer comes 0.3 s sooner

_lock = threading.Lock()
_compiled: OrderedDict[str, CompiledNetwork] = OrderedDict()


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
        """Whether this process compiled the network before, so that asking it takes milliseconds."""
        with _lock:
            return self.card.digest in _compiled

    def scores(self, graph: PolicyGraph) -> NDArray[np.float32]:
        """How good each of D devices is for each of N units, ``float32[N, D]``; ``-inf`` = forbidden.

        Raises:
            CheckpointError: The policy cannot place on so many devices, or its network cannot be run.
            PlacementError: The policy finds no placement within the memory limits.
        """
        self.check_devices(graph.num_devices)
        try:
            return compute_scores(self._network(), graph, str(self.card.folder))
        finally:
            if len(graph) > _SMALL:
                # What 20,000 units took, 0.2 GB, would stay for as long as the network does. OpenVINO
                # writes beyond its memory in the next inference after release_memory() (seen in 2026.4.1).
                with _lock:
                    _compiled.pop(self.card.digest, None)

    def greedy(self, graph: PolicyGraph) -> IntArray:
        """The policy's placement, or a single device that is faster by the simulator, ``int32[N]``.

        Raises:
            PlacementError: The policy finds no placement within the memory limits.
            CheckpointError: See :meth:`scores`.
        """
        return fitting_or_single(self.scores(graph), graph)

    def sample(self, graph: PolicyGraph, k: int, seed: int = 0, temperature: float = 1.0) -> IntArray:
        """Draw from the policy: every unit on its own, with probabilities ``softmax(scores / temperature)``.

        Draws are kept within memory limits as the answer itself is, see :mod:`ov_autoplace.policy.readout`.

        Args:
            graph: N units.
            k: How many answers.
            seed: Equal seeds draw equal answers.
            temperature: Above 0; small values come close to the likeliest placement.

        Returns:
            ``int32[k, N]``.

        Raises:
            PlacementError: The policy finds no placement within the memory limits.
            CheckpointError: See :meth:`scores`.
        """
        return draw(self.scores(graph), graph, k, seed, temperature)

    def _network(self) -> CompiledNetwork:
        key = self.card.digest
        with _lock:
            if key not in _compiled:
                _compiled[key] = compile_network(*self._content, str(self.card.folder))
                while len(_compiled) > _KEPT:
                    _compiled.popitem(last=False)
            _compiled.move_to_end(key)
            return _compiled[key]


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
