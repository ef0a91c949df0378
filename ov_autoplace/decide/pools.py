"""Who may run many requests: devices under their own hint, all side by side, copies, pipelines, mixtures.

Measured on OpenVINO 2026.4.1 (docs/rate.md): a synchronous inference of a CPU model with several streams is
handed to the thread of a stream, and one in the calling thread holds the model's only graph, so that callers
of one model wait for a thread or for each other. N models of one thread, one per caller, do neither. Below
some hundred microseconds a single model in the calling thread is also the fastest to be called
asynchronously, because no thread is woken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ov_autoplace.decide.machine import Machine
from ov_autoplace.devices.names import property_text
from ov_autoplace.devices.widths import Cores, Width, is_cpu
from ov_autoplace.graph.failing import can_fail
from ov_autoplace.graph.prepare import PreparedModel
from ov_autoplace.measure.session import ProfilingSession
from ov_autoplace.plan.decision import Candidate
from ov_autoplace.plan.mixture import Mixture
from ov_autoplace.plan.placement import Placement
from ov_autoplace.plan.plan import HINT, Member, PoolPlan, SplitPlan, WholePlan

__all__ = [
    "able_devices",
    "copies",
    "copies_that_fit",
    "hinted",
    "mixed",
    "other_bases",
    "without_hint",
]

_TURNS = 8  # of a mixture's requests: fractions are rounded to so many parts
_MOST_COPIES = 64


def without_hint(machine: Machine) -> Machine:
    """The same request, with no hint in the properties of the devices: every entrant brings its own."""
    properties = {key: value for key, value in machine.options.properties.items() if key != HINT}
    return replace(machine, options=replace(machine.options, properties=properties))


def able_devices(machine: Machine, session: ProfilingSession) -> list[str]:
    """The devices that may run and hold the whole model, pins included."""
    pinned = set(machine.options.pins.values())
    feasibility = session.feasibility
    return [
        d
        for d in session.devices
        if feasibility.supports_all(d) and feasibility.holds_all(d) and pinned <= {d}
    ]


def hinted(devices: Sequence[str], prepared: PreparedModel) -> list[Candidate]:
    """What OpenVINO offers: each device under THROUGHPUT, and AUTO over all of them.

    Args:
        devices: Those that can run and hold the whole model.
        prepared: The model; AUTO refuses one with variables, whose requests cannot change devices.
    """
    found = [_alone(f"{d} THROUGHPUT", _hinted(d, "THROUGHPUT")) for d in devices]
    if len(devices) > 1 and not prepared.model.get_sinks():
        # AUTO would run on the CPU until the others are compiled.
        settings = {HINT: "CUMULATIVE_THROUGHPUT", "ENABLE_STARTUP_FALLBACK": "NO"}
        member = WholePlan("AUTO:" + ",".join(devices), properties=settings)
        found.append(_alone("AUTO CUMULATIVE_THROUGHPUT", member))
    return found


def other_bases(machine: Machine, devices: Sequence[str], prepared: PreparedModel) -> list[Candidate]:
    """Single compiled models beside the hinted ones: a device for itself, and a CPU in the calling thread.

    Args:
        machine: Without the hint.
        devices: Those that can run and hold the whole model.
        prepared: The model.
    """
    found = []
    for device in devices:
        if not _may_choose(machine, device, prepared):
            continue
        found.append(_alone(f"{device} LATENCY", _hinted(device, "LATENCY")))
        caller = WholePlan(device, Width(1, in_caller=True))
        found.append(_alone(f"{device} in the calling thread", caller))
    return found


def copies(
    machine: Machine, devices: Sequence[str], prepared: PreparedModel, fitting: Mapping[str, float]
) -> list[Candidate]:
    """N models of a part of a CPU's threads each, which together have all of them.

    Args:
        machine: Without the hint.
        devices: Those that can run and hold the whole model.
        prepared: The model.
        fitting: How many models each device has memory for, one more than what else is compiled.
    """
    found = []
    cores = Cores.of_this_process().usable
    for device in devices:
        if not _may_choose(machine, device, prepared):
            continue
        widths = [Width(1, in_caller=True)]
        widths += [] if can_fail(prepared.model) else [Width(1)]
        widths += [width for width in machine.widths(device) if width.threads > 1 and not width.cores]
        for width in widths:
            count = min(cores // width.threads, _MOST_COPIES)
            if 2 <= count <= fitting[device]:
                member = WholePlan(device, width)
                name = f"{count} x {member.name}"
                found.append(Candidate(name, PoolPlan(name, member, (member,) * count, count)))
    return found


def copies_that_fit(session: ProfilingSession, devices: Sequence[str]) -> dict[str, float]:
    """How many copies of the model each device has memory for, beside one model more."""
    weights = max(float(session.feasibility.graph.weight_bytes.sum()), 1.0)
    return {d: float(session.feasibility.memory[session.devices.index(d)]) / weights - 1 for d in devices}


def mixed(
    mixture: Mixture | None, whole: Placement | None, properties: Mapping[str, Mapping[str, Any]]
) -> list[Candidate]:
    """The best pipeline and the best mixture of placements, where they are more than one device.

    Args:
        mixture: Of placements on the devices, by a cost table.
        whole: The best placement that all requests share.
        properties: Of each device.
    """
    texts = {d: {key: property_text(value) for key, value in own.items()} for d, own in properties.items()}
    found = []
    if whole is not None and whole.latency_seconds and len(set(whole.assignment.tolist())) > 1:
        pipeline = _alone("pipeline", member_of(whole, texts), whole.latency_seconds)
        pipeline.assignment = whole.assignment
        found.append(pipeline)
    if mixture is not None and len(mixture.placements) > 1:
        members = tuple(member_of(placement, texts) for placement in mixture.placements)
        counts = np.maximum(1, np.round(mixture.fractions * _TURNS)).astype(int)
        turns = np.repeat(np.arange(len(members)), counts)
        # Spread out, so that the first few requests already have about the right shares.
        order = np.argsort(np.concatenate([(np.arange(c) + 0.5) / c for c in counts]), kind="stable")
        name = "mixture of " + ", ".join(" + ".join(member.devices) for member in members)
        plan = PoolPlan(name, members[0], members, len(turns), tuple(turns[order].tolist()))
        assignment = mixture.placements[0].assignment
        found.append(Candidate(name, plan, 1 / mixture.rate_per_second, assignment=assignment))
    return found


def _alone(name: str, model: Member, seconds: float | None = None) -> Candidate:
    """One compiled model; how many requests it wants is known when it is compiled."""
    return Candidate(name, PoolPlan(name, model, requests=model.fewest_requests), seconds)


def member_of(placement: Placement, properties: Mapping[str, Mapping[str, str]]) -> Member:
    """A placement, compiled so that HETERO gives its submodels no queue that all of them share."""
    split = SplitPlan(placement.names, placement.assignment, placement.devices, placement.members)
    used = split.devices
    if len(used) == 1:
        return _hinted(used[0], "THROUGHPUT")
    own = ",".join(
        f"{device}:{{{','.join(f'{key}:{value}' for key, value in _settings(properties[device]).items())}}}"
        for device in used
    )
    return replace(split, properties={"DEVICE_PROPERTIES": f"{{{own}}}"})


def _hinted(device: str, hint: str) -> WholePlan:
    return WholePlan(device, properties={HINT: hint})


def _settings(properties: Mapping[str, str]) -> dict[str, str]:
    return {**properties, HINT: "THROUGHPUT"}


def _may_choose(machine: Machine, device: str, prepared: PreparedModel) -> bool:
    """Whether the threads of a CPU are ours to choose; what is best for one shape may not be for another."""
    is_dynamic = any(value.get_partial_shape().is_dynamic for value in prepared.model.inputs)
    known = not is_dynamic or bool(machine.options.shapes)
    return known and is_cpu(machine.core, device) and not machine.chooses_threads(device)
