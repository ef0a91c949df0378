"""On which part of a CPU's threads a model should run: who may win is estimated, who wins is measured.

Running on fewer threads saves the time that threads wait for each other at every node, and costs the time
that their work takes on those that remain::

    seconds(width) = (seconds(all) - nodes x synchronisation x log2(all / width)) x (all / width) ^ scaling

On two cores, 85 networks were measured at 2.6 us a node (0.85 to 4.6) and at a scaling of about 0.7: work on
twice as many threads takes 0.6 of the time. A width is only compiled where it could win even if both were
better for it than was ever measured, so a model that takes long pays nothing for the question.

That holds where the cores are there for the model. Under a quota of processor time the default takes all of
them for a part of each period and none for the rest of it, however many nodes there are: no width is ruled
out there, and who wins is measured over whole periods (``measure/sustained.py``).
"""

from __future__ import annotations

import math
from dataclasses import replace

import openvino as ov

from ov_autoplace._base.statistics import ESTIMATE_MARGIN, MINIMAL_GAIN
from ov_autoplace.cost.estimate import estimates
from ov_autoplace.cost.generic_target import generic_target
from ov_autoplace.decide.machine import Machine
from ov_autoplace.devices.widths import Width
from ov_autoplace.graph.computation_graph import ComputationGraph
from ov_autoplace.graph.extract import extract
from ov_autoplace.graph.failing import can_crash_on_one_thread, can_fail, halves_threads
from ov_autoplace.plan.decision import Candidate
from ov_autoplace.plan.plan import WholePlan

__all__ = [
    "LONGEST_STOPPED_SECONDS",
    "could_win",
    "estimated_plans",
    "estimated_widths",
    "narrow_seconds",
    "possible_widths",
    "width_candidate",
    "widths_for",
]

LONGEST_STOPPED_SECONDS = 0.5
"""Under a quota: the longest inference on all threads beside which widths are raced. One that takes so many
periods is stopped in all of them on any number of threads."""

# In favour of fewer threads: what a node saves per halving, what an inference does, and how work scales.
_MOST_PER_NODE, _MOST_ONCE, _LEAST_SCALING = 5e-6, 10e-6, 0.3


def widths_for(
    machine: Machine, device: str, model: ov.Model, *, is_compiled_apart: bool = True
) -> tuple[Width, ...]:
    """The widths that a model may be given on a device, the narrowest first.

    None where the user chose how many threads there are, on a single core, and for a model whose shapes are
    not known: what is best for one shape may be slower than the default for another.

    Args:
        machine: The devices.
        device: One of them.
        model: With its shape computations folded.
        is_compiled_apart: Whether a child process compiles the model first, which may end it.
    """
    widths = possible_widths(machine, device, model)
    if not widths or not (can_fail(model) or (not is_compiled_apart and can_crash_on_one_thread(model))):
        return widths
    return tuple(replace(width, in_caller=width.threads == 1) for width in widths)


def possible_widths(machine: Machine, device: str, model: ov.Model) -> tuple[Width, ...]:
    """:func:`widths_for`, whoever the thread of a single one belongs to."""
    is_dynamic = any(value.get_partial_shape().is_dynamic for value in model.inputs)
    widths = () if is_dynamic and not machine.options.shapes else machine.widths(device)
    if widths and machine.multiplies_tiles(device) and halves_threads(model):
        # For one thread, OpenVINO's compiler would end the process.
        return tuple(width for width in widths if width.threads > 1)
    return widths


def estimated_plans(machine: Machine, model: ov.Model) -> list[WholePlan]:
    """Each device, on all threads or on the part of them that is estimated to be best; the fastest first.

    Args:
        machine: The devices.
        model: With its shape computations folded.

    Raises:
        OptionError: A shape does not fit.
    """
    graph = extract(model, machine.options.shapes)
    found = []
    for device in machine.devices:
        whole, widths = estimated_widths(machine, device, model, graph)
        best = whole, WholePlan(device)
        for width, seconds in widths:
            if seconds < min((1 - ESTIMATE_MARGIN) * whole, best[0]):
                best = seconds, WholePlan(device, width)
        found.append(best)
    return [plan for _, plan in sorted(found, key=lambda one: one[0])]


def estimated_widths(
    machine: Machine, device: str, model: ov.Model, graph: ComputationGraph
) -> tuple[float, list[tuple[Width, float]]]:
    """What the ops of a model are estimated to take on a device and on parts of its threads, in seconds.

    A part of certain cores is left out, since profiles know threads and not which cores they are on.

    Args:
        machine: The devices.
        device: One of them.
        model: With its shape computations folded.
        graph: Its ops.
    """
    profile = (machine.target or generic_target(machine.core, machine.devices)).device(device)
    able = widths_for(machine, device, model, is_compiled_apart=False)
    widths = [width for width in able if not width.cores]
    whole, *parts = estimates(graph, [profile, *(profile.on_threads(width.threads) for width in widths)])
    return whole.total, [(width, part.total) for width, part in zip(widths, parts, strict=True)]


def width_candidate(alone: Candidate, device: str, width: Width, seconds: float) -> Candidate:
    """A device on a part of its threads, as far as it is known.

    Args:
        alone: The device as OpenVINO runs it by itself, or on another part.
        device: Its name.
        width: The part.
        seconds: What it is predicted to take.
    """
    plan = WholePlan(device, width)
    return Candidate(plan.name, plan, seconds, assignment=alone.assignment)


def could_win(seconds: float, nodes: float, share: float, best: float) -> bool:
    """Whether a part of the cores could beat ``best`` seconds; the other arguments are those of below."""
    least = narrow_seconds(seconds, nodes, share, _MOST_PER_NODE, _MOST_ONCE, _LEAST_SCALING)
    return least < (1 - MINIMAL_GAIN) * best


def narrow_seconds(
    seconds: float,
    nodes: float,
    share: float,
    per_node: float,
    once: float,
    scaling: float,
    most_saved: float = 1.0,
) -> float:
    """What a model takes on a part of the cores, see the head of this file.

    Args:
        seconds: What it takes on all of them.
        nodes: How many nodes are executed.
        share: All cores over those of the part.
        per_node: Seconds that each halving saves per node.
        once: Seconds that each halving saves per inference.
        scaling: Work on ``n`` times the cores is ``n`` to this power times as fast.
        most_saved: Share of ``seconds`` that can be waiting.
    """
    saved = min((nodes * per_node + once) * math.log2(share), most_saved * seconds)
    return float((seconds - saved) * share**scaling)
