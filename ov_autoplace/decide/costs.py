"""Where the costs of a decision come from: a target profile, what is measured in time, or estimates."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass

from ov_autoplace._base.arrays import BoolArray
from ov_autoplace._base.budget import Budget
from ov_autoplace.cost.estimate import estimated_table
from ov_autoplace.cost.generic_target import generic_target
from ov_autoplace.cost.table import CostTable
from ov_autoplace.cost.transfers import TransferFit, TransferSample
from ov_autoplace.decide.machine import Machine
from ov_autoplace.graph.prepare import PreparedModel
from ov_autoplace.measure.counting import CountedDevices
from ov_autoplace.measure.crossings import PROBES
from ov_autoplace.measure.profiled import Profile, counted_profile, profile_session
from ov_autoplace.measure.session import ProfilingSession
from ov_autoplace.measure.transfer_store import TransferStore
from ov_autoplace.measure.transfers import measure_transfers

__all__ = ["CostSource", "Measured"]

_log = logging.getLogger("ov_autoplace")

# Timing the model on the devices and its probes takes so long besides compiling them.
_TIMING_SECONDS = 0.6
# One size of transfers between two devices, before one was measured; and how many times that must be left
# for sizes that only make the fit better.
_FIRST_TRANSFER_SECONDS, _LEISURE = 1.0, 2.0


@dataclass(frozen=True, eq=False)
class Measured:
    """What is known of a model after its nodes were counted on every device.

    Attributes:
        session: The model on its devices.
        counted: Seconds of every op on every device, as far as they were counted.
    """

    session: ProfilingSession
    counted: CountedDevices


class CostSource:
    """The costs of models on a machine.

    Args:
        machine: The devices.
        budget: The time that all may take.
    """

    def __init__(self, machine: Machine, budget: Budget) -> None:
        self._machine = machine
        self._budget = budget

    def estimate(self, prepared: PreparedModel, supported: BoolArray | None = None) -> CostTable:
        """The estimated cost table, from a target profile or from what the devices say of themselves."""
        core, devices = self._machine.core, self._machine.devices
        target = self._machine.target or generic_target(core, devices)
        if supported is None and set(devices) <= set(core.available_devices):
            supported = prepared.supported(core, devices)
        coarse = prepared.groups(self._machine.options.pins)
        return estimated_table(coarse, target, devices, supported)

    def transfers(self, session: ProfilingSession, thorough: bool = True) -> tuple[TransferFit, bool]:
        """What crossings cost, and whether that is known or only assumed.

        From the target profile; else measured once per machine, as far as the budget goes: what an earlier
        decision had no time for is measured by a later one.

        Args:
            session: What is measured runs in its process.
            thorough: Measure more sizes than a fit needs, where there is time.
        """
        if self._machine.known is not None:
            return self._machine.known.transfers, True
        target = self._machine.target
        if target is not None:
            return target.transfers, True
        store = TransferStore(self._machine.core, self._machine.devices, session.properties)
        samples = store.samples()
        complete = store.fit(samples) is not None
        fresh: list[TransferSample] = []
        longest = _FIRST_TRANSFER_SECONDS
        for pair, size in store.missing(samples):
            self._budget.check()
            if complete and not thorough:
                break
            # Beyond the fewest sizes, more of them are worth only time that no race needs.
            if not self._budget.allows(longest * (_LEISURE if complete else 1)):
                break
            started = time.perf_counter()
            fresh += measure_transfers(session.profiler, pair, sizes=(size,)).samples
            longest = time.perf_counter() - started
            complete = store.fit([*samples, *fresh]) is not None
        if fresh:
            store.add(fresh)
        fit = store.fit([*samples, *fresh])
        if fit is None:
            _log.debug("the budget ends before transfers are measured: they are assumed")
            return self.assumed_transfers(), False
        return fit, True

    def assumed_transfers(self) -> TransferFit:
        """What crossings cost by kind of device, where nothing was measured."""
        target = self._machine.target or generic_target(self._machine.core, self._machine.devices)
        return target.transfers.for_devices(self._machine.devices)

    def profile(self, known: Measured, transfers: TransferFit) -> Profile:
        """The cost table, with probes where time allows, from the counted nodes alone where it is short."""
        budget, compile_seconds = self._budget, known.counted.compile_seconds
        timed = _TIMING_SECONDS + compile_seconds
        probes = timed * PROBES / len(self._machine.devices)
        # As much again is kept for the race, which is what proves a gain.
        if not budget.allows(2 * (timed + probes)):
            return self.counted(known, transfers)
        pins = self._machine.options.pins
        return profile_session(known.session, pins, transfers, counted=known.counted)

    def counted(self, known: Measured, transfers: TransferFit) -> Profile:
        """The cost table from the counted nodes alone; nothing more is run."""
        return counted_profile(
            known.session.feasibility, known.counted, self._machine.options.pins, transfers
        )
