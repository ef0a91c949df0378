"""A compiled model whose infer requests belong to several compiled models in turns.

A CPU model runs a synchronous inference in the thread that calls only if it has no streams, and then has one
graph, for which its callers wait. Where every caller has a model of its own, nobody waits. The compiled model
that a program holds is a real one, which ``AsyncInferQueue``, export and OpenVINO's own code use as it is;
what this class adds is that requests made by ``create_infer_request`` come from others too.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import openvino as ov
from openvino.utils.data_helpers import OVDict

from ov_autoplace.plugin.placed_model import PlacedModel

__all__ = ["DealingModel"]

_OPTIMAL = "OPTIMAL_NUMBER_OF_INFER_REQUESTS"


class DealingModel(PlacedModel):
    """A compiled model that deals out the requests of others.

    Args:
        base: What it is itself.
        members: Compiled from the same model.
        turns: Whose turn it is with each new request, as indices into ``members``, over and over.
        requests: How many requests should be in flight.
    """

    def __init__(
        self, base: ov.CompiledModel, members: Sequence[ov.CompiledModel], turns: Sequence[int], requests: int
    ) -> None:
        super().__init__(base, {_OPTIMAL: requests})
        self._members = tuple(members)
        self._turns = itertools.cycle(turns)  # whose next() is atomic

    def create_infer_request(self) -> ov.InferRequest:
        """A new request of whichever compiled model has its turn."""
        return _DealtRequest(self._members[next(self._turns)].create_infer_request(), self.outputs)


class _DealtRequest(ov.InferRequest):  # type: ignore[misc]
    """A request whose results are found by the outputs of the model that dealt it out, too."""

    def __init__(self, request: ov.InferRequest, outputs: Sequence[Any]) -> None:
        super().__init__(request)
        self._outputs = tuple(outputs)

    def infer(self, *args: Any, **kwargs: Any) -> OVDict:
        """See ``openvino.InferRequest.infer``."""
        return self._by_outputs(super().infer(*args, **kwargs))

    @property
    def results(self) -> OVDict:
        """See ``openvino.InferRequest.results``."""
        return self._by_outputs(super().results)

    def _by_outputs(self, found: OVDict) -> OVDict:
        return OVDict(dict(zip(self._outputs, found.values(), strict=True)))
