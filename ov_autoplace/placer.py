"""The algorithm: from a model and devices to a placement that is never knowingly slower than one device.

1. Extract the graph, coarsen it, mask what a device cannot run and what the user pinned.
2. Make the cost table: analytic (ZERO_SHOT) or profiled (PROFILE, TUNE).
3. Propose candidates: every single device, default HETERO, the solvers' answers, the learned policy's
   answer and draws from it; simulate them. In ZERO_SHOT, where costs are estimates, the policy comes first.
4. PROFILE and TUNE race the best few, and always the best single device, on the devices themselves;
   TUNE corrects the table from what it measured, proposes again, and goes on until its budget ends.
5. Take the winner if it beats the best single device by more than the noise, else that device.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import openvino as ov

from ov_autoplace._collector import collection_paused
from ov_autoplace.arena import Arena, Contest, predicted
from ov_autoplace.cost.analytic import analytic_table
from ov_autoplace.cost.profiled import profile_session
from ov_autoplace.cost.profiling import ProfilingSession
from ov_autoplace.cost.table import CostTable
from ov_autoplace.cost.target import Target
from ov_autoplace.cost.transfers import TransferFit, measure_transfers
from ov_autoplace.devices import (
    core_with_extra_devices,
    device_properties,
    device_settings,
    fingerprint,
    resolve_devices,
)
from ov_autoplace.errors import OptionError, ProfilingError
from ov_autoplace.graph.coarsen import coarsen
from ov_autoplace.graph.computation_graph import ComputationGraph
from ov_autoplace.graph.extract import extract
from ov_autoplace.graph.folding import fold_static_shapes
from ov_autoplace.graph.names import make_names_unique
from ov_autoplace.options import PlacerOptions
from ov_autoplace.placement.decision import Candidate, Decision
from ov_autoplace.placement.placement import Placement
from ov_autoplace.policy.runner import PolicyRunner, find_policy
from ov_autoplace.proposals import POLICY_NAME, ProposalSource, propose
from ov_autoplace.simulator import simulate
from ov_autoplace.support import supported_ops
from ov_autoplace.unfolding import unfolded

__all__ = ["Placer", "place"]

_log = logging.getLogger("ov_autoplace")
_measured_transfers: dict[str, TransferFit] = {}
_PHASES = (("extract", "prepare", "profile", "solve", "measure"), ("extract", "estimate", "solve"))


def place(
    model: ov.Model,
    devices: str | Sequence[str] | None = None,
    mode: str = "PROFILE",
    core: ov.Core | None = None,
    **options: Any,
) -> Placement:
    """Decide which device runs each op of ``model``, which is not modified.

    Args:
        model: Any model; names that occur twice are told apart as ``annotate`` renames them.
        devices: Real devices, ``"GPU,CPU"`` or a sequence; all of the Core's when ``None``.
        mode: ``ZERO_SHOT``, ``PROFILE`` or ``TUNE``.
        core: Where the devices are; ``None`` means a new Core.
        **options: The other fields of :class:`~ov_autoplace.options.PlacerOptions`.

    Returns:
        A device for every op; ``decision`` says how it was chosen.

    Raises:
        AutoplaceError: One of its kinds, when the request or the model cannot be met.
    """
    settings = PlacerOptions.from_arguments({"mode": mode, **options})
    core = core or core_with_extra_devices()
    if settings.target is not None and settings.mode == "ZERO_SHOT":
        # The profile of another machine names devices that need not be here.
        resolved = Target.load(settings.target).resolve_devices(devices)
    else:
        resolved = resolve_devices(core, devices)
    if not resolved:
        raise OptionError("OpenVINO finds no device on this machine; install the driver of one")
    return Placer(core, resolved, settings).place(model)


def _nothing() -> None:
    """What there is to wait for without a policy."""


class Placer:
    """Places models on the devices of one Core with one set of options."""

    def __init__(
        self,
        core: ov.Core,
        devices: Sequence[str],
        options: PlacerOptions,
        left_out: Mapping[str, str] | None = None,
    ) -> None:
        self._core = core
        self._devices = tuple(devices)
        self._options = options
        self._left_out = dict(left_out or {})
        self._seconds: dict[str, float] = {}

    def place(self, model: ov.Model) -> Placement:
        """See :func:`place`."""
        self._seconds = {}
        options = self._options
        # Who names the policy among the solvers demands one: the shipped one when none is named.
        asked = options.policy or ("base" if POLICY_NAME in options.solvers else None)
        policy = find_policy(asked, len(self._devices))
        with policy.compiled_ahead() if policy is not None else nullcontext(_nothing) as wait_for_policy:
            return self._place(model, policy, asked is not None, wait_for_policy)

    def _place(
        self,
        model: ov.Model,
        policy: PolicyRunner | None,
        demanded: bool,
        wait_for_policy: Callable[[], None],
    ) -> Placement:
        options = self._options
        with self._phase("extract"), collection_paused():
            whole, model = model, model.clone()
            make_names_unique(model)
            fold_static_shapes(model)
            graph = extract(model, options.shapes)
        source = ProposalSource(
            options.memory_limit,
            options.pin,
            options.seed,
            options.solvers,
            policy=policy,
            policy_is_demanded=demanded,
        )
        if options.mode == "ZERO_SHOT":
            with self._phase("estimate"):
                table = self._estimate(model, graph)
            with self._phase("solve"):
                contest = predicted(propose(table, source))
            return self._answer(whole, table, contest, source)
        properties = device_properties(self._core, self._devices, options.properties)
        with self._phase("prepare"):
            supported = supported_ops(self._core, model, graph.names, self._devices, properties)
            session = ProfilingSession(
                self._core,
                model,
                self._devices,
                properties,
                options.shapes,
                options.seed,
                isolation=options.isolation,
            )
        wait_for_policy()  # nothing else may run while something is measured
        with session:
            with self._phase("profile"):
                able = [
                    d
                    for d, every in zip(self._devices, np.all(supported, axis=0).tolist(), strict=True)
                    if every
                ]
                failed = session.failures(able)
            if not failed:
                try:
                    with self._phase("profile"):
                        transfers = self._transfers(session, properties)
                        profile = profile_session(session, graph, supported, options.pin, transfers)
                    with self._phase("solve"):
                        proposals = propose(profile.table, source)
                    with self._phase("measure"):
                        contest = Arena(session, profile, source, options).run(proposals)
                    return self._answer(whole, profile.table, contest, source)
                except ProfilingError as cause:
                    if cause.device is None:
                        return self._single(whole, session, able, cause)
                    failed = {cause.device: cause}
            if len(failed) == len(self._devices):
                return self._single(whole, session, able, next(iter(failed.values())))
        return self._without(failed).place(whole)

    def _without(self, failed: Mapping[str, ProfilingError]) -> Placer:
        """The same request on the devices that can run the model, whatever they say they support."""
        remaining = [device for device in self._devices if device not in failed]
        for device, cause in failed.items():
            _log.warning("%s is left out: %s", device, cause)
        limits = {d: limit for d, limit in self._options.memory_limit.items() if d not in failed}
        left_out = self._left_out | {device: str(cause) for device, cause in failed.items()}
        return Placer(self._core, remaining, replace(self._options, memory_limit=limits), left_out)

    def _single(
        self, model: ov.Model, session: ProfilingSession, able: Sequence[str], cause: ProfilingError
    ) -> Placement:
        """The fastest device that can be measured, else the first one that compiles, when all else fails.

        Args:
            model: All of it.
            session: Knows which devices failed already.
            able: Devices that say that they support all ops.
            cause: Why nothing better can be said.

        Raises:
            ProfilingError: None of them compiles it.
        """
        compiled = [device for device in able if not session.compilation_failure(device)]
        if not compiled:
            raise cause
        candidates = tuple(session.run_alone(device) for device in compiled)
        chosen = min(candidates, key=lambda c: c.measured_seconds or np.inf)
        how = "the first device" if chosen.measured_seconds is None else "the fastest device alone"
        reason = f"{chosen.name} is {how} that compiles the model; nothing else could be measured: {cause}"
        decision = Decision(
            chosen=chosen.name,
            reason=reason + self._left_out_text(),
            mode=self._options.mode,
            candidates=candidates,
            seconds=dict(self._seconds),
            left_out=self._left_out,
        )
        _log.warning("%s", decision)
        model = model.clone()
        make_names_unique(model)
        names = (op.get_friendly_name() for op in model.get_ordered_ops())
        placement = Placement.from_dict(dict.fromkeys(names, chosen.name))
        return replace(placement, solver=chosen.name, decision=decision)

    def _left_out_text(self) -> str:
        return "".join(f"; {device} is left out: {reason}" for device, reason in self._left_out.items())

    def _estimate(self, model: ov.Model, graph: ComputationGraph) -> CostTable:
        """The analytic cost table, from a target profile or from what the devices say of themselves."""
        target = self._target() or Target.generic(self._core, self._devices)
        supported = None
        if set(self._devices) <= set(self._core.available_devices):
            supported = supported_ops(self._core, model, graph.names, self._devices)
        return analytic_table(coarsen(graph, pins=self._options.pin), target, self._devices, supported)

    def _transfers(
        self, session: ProfilingSession, properties: Mapping[str, Mapping[str, Any]]
    ) -> TransferFit:
        """The target profile's transfer costs, else measured ones, once per process and device settings."""
        target = self._target()
        if target is not None:
            return target.transfers
        settings = device_settings(self._core, self._devices, properties)
        key = repr((fingerprint(self._core, self._devices), settings))
        if key not in _measured_transfers:
            _measured_transfers[key] = measure_transfers(session.profiler, self._devices)
        return _measured_transfers[key]

    def _target(self) -> Target | None:
        return Target.load(self._options.target) if self._options.target is not None else None

    def _answer(
        self, model: ov.Model, table: CostTable, contest: Contest, source: ProposalSource
    ) -> Placement:
        candidates = tuple(
            Candidate(
                name=entrant.name,
                predicted_seconds=entrant.proposal.predicted_seconds,
                subgraphs=simulate(table, entrant.proposal.assignment).subgraphs,
                samples=entrant.samples,
                dropped=entrant.dropped,
                also=entrant.proposal.also,
            )
            for entrant in contest.entrants
        )
        winner = contest.winner.proposal
        decision = Decision(
            chosen=winner.name,
            reason=contest.reason + self._left_out_text(),
            mode=self._options.mode,
            candidates=candidates,
            seconds=dict(self._seconds),
            table=table,
            left_out=self._left_out,
        )
        _log.info("%s", decision)
        placement = replace(
            Placement.of_groups(table, winner.assignment, solver=winner.name),
            latency_seconds=winner.predicted_seconds,
            lower_bound_seconds=winner.lower_bound_seconds,
            decision=decision,
            given={},  # to be found: it was decided on the folded model
        )
        return unfolded(model, placement, table, source, shapes=self._options.shapes)

    @contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        """Time a phase and tell the caller that it began."""
        phases = _PHASES[self._options.mode == "ZERO_SHOT"]
        if self._options.progress is not None:
            self._options.progress(phases.index(name), len(phases), name)
        start = time.perf_counter()
        try:
            yield
        finally:
            self._seconds[name] = self._seconds.get(name, 0.0) + time.perf_counter() - start
