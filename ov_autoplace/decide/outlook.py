"""What estimates say of the only device of a request before anything is measured, and where they suffice.

What cannot gain is not measured, nor is what surely gains. Where costs are learned, that is counted
(``tools/cost_training.py --sure``): networks of costs were trained without a third of all families each, and
none of the networks of that third was slower on fewer threads where so much was expected of them. Where costs
are not learned, nothing is sure but that a model that takes long does not gain.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import openvino as ov

from ov_autoplace.cost.estimate import estimates
from ov_autoplace.cost.generic_target import generic_target
from ov_autoplace.cost.table import LEARNED
from ov_autoplace.decide.divisions import is_worth_dividing
from ov_autoplace.decide.machine import Machine
from ov_autoplace.decide.verdict import Verdict
from ov_autoplace.decide.widths import LONGEST_STOPPED_SECONDS, could_win, widths_for
from ov_autoplace.devices.widths import Cores, Width
from ov_autoplace.graph.extract import extract
from ov_autoplace.graph.shapes import Call
from ov_autoplace.plan.decision import Candidate
from ov_autoplace.plan.findings import Finding, Kind
from ov_autoplace.plan.plan import WholePlan

__all__ = ["MOST_DOUBT", "SURELY_FASTER", "SURELY_SLOWER", "Outlook", "settled"]

SURELY_SLOWER, DOUBTED_SLOWER = 1.2, 1.5
"""A width that is predicted to take so many times as long is not faster: the second where that is doubted."""

SURELY_FASTER, MOST_DOUBT = 0.7, 1.25
"""A width that is predicted to take less of the time is faster, where the network doubts itself less."""

# No model runs faster than at so many times the rates that are assumed for a machine without a profile.
_FASTER_THAN_ASSUMED = 2.0


@dataclass(frozen=True)
class Outlook:
    """What is expected of the widths of a device for one model.

    Attributes:
        may_win: Whether one of them could be faster than the device's default.
        surely: The width that is faster than the default without a doubt; ``None`` where nobody can say.
        shares: What the widths are estimated to take of the default's time, by their threads; empty where
            estimates are not sure enough.
    """

    may_win: bool = False
    surely: Width | None = None
    shares: Mapping[int, float] = field(default_factory=dict)

    @classmethod
    def of(cls, machine: Machine, device: str, model: ov.Model) -> Outlook:
        """Look at the size of a model and at its ops.

        Args:
            machine: The devices.
            device: One of them.
            model: With unique names and its shape computations folded.

        Raises:
            OptionError: A shape does not fit.
        """
        widths = widths_for(machine, device, model)
        if not widths:
            return cls()
        profile = (machine.target or generic_target(machine.core, (device,))).device(device)
        narrow = [profile.on_threads(width.threads) for width in widths if profile.threads]
        nodes = work = 0.0
        totals, doubt = np.zeros(1 + len(narrow)), 1.0
        is_learned = bool(narrow)
        for call in machine.options.calls or (Call(machine.options.shapes),):
            found = estimates(extract(model, call.shapes), [profile, *narrow])
            nodes += call.times * found[0].kernels
            work += call.times * found[0].work
            totals += call.times * np.array([one.total for one in found])
            doubt = max(doubt, *(one.doubt for one in found))
            is_learned &= found[0].source == LEARNED
        if machine.quota is not None and work < LONGEST_STOPPED_SECONDS:
            return cls(may_win=True)
        if not is_learned or totals[0] <= 0:
            seconds, cores = work / _FASTER_THAN_ASSUMED, Cores.of_this_process().all
            return cls(any(could_win(seconds, nodes, cores / width.threads, seconds) for width in widths))
        shares = totals[1:] / totals[0]
        best = int(np.argmin(shares))
        is_here = machine.target is None or profile.threads == Cores.of_this_process().all
        # Profiles know threads, and not which cores those of a width are on.
        is_told = is_here and not widths[best].cores
        is_sure = is_told and shares[best] < SURELY_FASTER and doubt < MOST_DOUBT
        slower = SURELY_SLOWER if doubt < MOST_DOUBT else DOUBTED_SLOWER
        # What is compiled otherwise in a process that it may end is measured there.
        unmeasured = widths_for(machine, device, model, is_compiled_apart=False) if is_sure else ()
        surely = widths[best] if widths[best] in unmeasured else None
        known = {width.threads: float(share) for width, share in zip(widths, shares, strict=True)}
        return cls(bool(shares[best] < slower), surely, known)


def settled(machine: Machine, model: ov.Model) -> Verdict | None:
    """How the only device of a request runs a model, where estimates leave nothing to measure.

    Args:
        machine: The device, and what the user asked for; who asks for ``TUNE`` wants widths to be measured.
        model: With unique names and its shape computations folded.

    Returns:
        ``None`` where measuring may gain something.

    Raises:
        OptionError: A shape does not fit.
    """
    device, options = machine.devices[0], machine.options
    if len(machine.devices) > 1 or options.executor == "OVERLAP":
        return None
    outlook = Outlook.of(machine, device, model)
    surely = None if options.mode == "TUNE" else outlook.surely
    if outlook.may_win and surely is None:
        return None
    if is_worth_dividing(machine, device, model, outlook.shares, surely):
        return None
    plan = WholePlan(device, surely)
    if surely is not None:
        findings = [Finding.of(Kind.SURELY_FASTER, plan.name, device, ratio=outlook.shares[surely.threads])]
    else:
        findings = [Finding.of(Kind.ONLY_DEVICE, device)]
        findings += [Finding(Kind.NARROWER_UNLIKELY)] if machine.widths(device) else []
    winner = Candidate(plan.name, plan)
    return Verdict(winner, tuple(findings), [winner])
