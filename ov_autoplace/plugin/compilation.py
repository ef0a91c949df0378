"""From a model and a device list to a compiled model: annotation, cached decision, or a new search."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import openvino as ov

from ov_autoplace._base import releases
from ov_autoplace._base.json_fields import naming
from ov_autoplace.decide.machine import Machine
from ov_autoplace.devices.models import openvino_reason
from ov_autoplace.devices.names import device_properties, single_device_config
from ov_autoplace.devices.widths import Cores, Width
from ov_autoplace.errors import AutoplaceError, OptionError, PlacementError
from ov_autoplace.graph.passes import FOLD, MEND, NAMED, formed, run_passes
from ov_autoplace.graph.support import supported_ops
from ov_autoplace.plan.annotation import annotated_placement, set_affinities
from ov_autoplace.plan.decision import Decision
from ov_autoplace.plan.joint import Part, read_joint_plan
from ov_autoplace.plan.placement import Placement
from ov_autoplace.plan.plan import HINT, LanePlan, Member, Plan, PoolPlan, SplitPlan, WholePlan
from ov_autoplace.plugin.blob_lock import cache_lock, tell_blobs_apart, tell_constants_apart, writing_blobs
from ov_autoplace.plugin.dealing import DealingModel
from ov_autoplace.plugin.decision_cache import DecisionCache, StoredDecision, reason_of
from ov_autoplace.plugin.placed_model import PlacedModel

__all__ = ["DECISION", "compile_part", "compile_placed", "found"]

DECISION = "AUTOPLACE_DECISION"
"""A property of compiled models: how it was decided how they run, a sentence."""

_log = logging.getLogger("ov_autoplace")
_AS_IT_IS = "%s is not tried on fewer threads or in lanes: %s"


Native = Callable[[ov.Model, str, Mapping[str, Any]], ov.CompiledModel]
"""``openvino.Core.compile_model`` without its AUTOPLACE part, bound to a Core."""


def _search(machine: Machine, model: ov.Model) -> Placement:
    from ov_autoplace.decide.place import place_fitted

    return place_fitted(machine, model)[0]


def _confirm(machine: Machine, model: ov.Model, plan: Plan) -> bool | None:
    from ov_autoplace.decide.confirmation import confirm

    return confirm(machine, model, plan).holds


def compile_placed(
    machine: Machine,
    model: ov.Model,
    compile_native: Native,
    explicit: bool = True,
    search: Callable[[Machine, ov.Model], Placement] = _search,
    confirm: Callable[[Machine, ov.Model, Plan], bool | None] = _confirm,
) -> ov.CompiledModel:
    """Place ``model`` on the devices of a machine and compile it.

    Args:
        machine: The caller's Core, real devices, and the options, whose ``properties`` go to OpenVINO.
        model: Is not modified.
        compile_native: Compiles.
        explicit: The caller named the devices; an annotation that uses others is then not applied.
        search: Finds a placement where none is known.
        confirm: Checks a plan that was found on a busy machine; ``None`` where that is not possible.
    """
    core, devices, options = machine.core, machine.devices, machine.options
    if options.application is not None:
        return _compile_part(machine, model, compile_native, options.application)
    if len(devices) == 1:
        if devices[0] in options.memory_limits and not _holders(machine, model, devices):
            limit = options.memory_limits[devices[0]]
            raise PlacementError(
                f"the model does not fit into the {limit:.0f} bytes that {devices[0]} may hold; "
                "raise the limit or add a device"
            )
        if not machine.widths(devices[0]) and not machine.wants_rate:
            alone = WholePlan(devices[0])
            return _telling(alone.compile(_Compiler(machine, model, compile_native)), reason_of(alone))
    model = formed(model, NAMED)
    annotated = _annotation(model, devices, explicit)
    if annotated is not None:
        compiled = annotated.plan.compile(_Compiler(machine, model, compile_native))
        return _telling(compiled, f"{annotated.plan.name}: the model is annotated so")
    if machine.wants_rate:
        machine.check_rate()
    run_passes(model, (FOLD,))
    compiler = _Compiler(machine, model, compile_native)
    # The hint is among the properties, which are part of the key: an entry for a rate is none for latency.
    cache = DecisionCache.of(core, model, devices, options)
    if options.decide == "BEHIND" and options.mode != "ZERO_SHOT":
        return _at_once(machine, model, cache, compiler, search)
    if cache is None:
        # What is compiled here has its shapes folded, so it takes the decision as it was made.
        placement = found(machine, model, search)
        return _telling(placement.plan.compile(compiler), reason_of(placement.plan, placement.decision))
    # Who waited for another process to decide finds its decision.
    with cache_lock(cache.lock):
        stored = cache.load([op.get_friendly_name() for op in model.get_ops()])
        plan = stored and cache.checked(stored, lambda plan: confirm(machine, model, plan))
        if stored is not None and plan is not None:
            compiled = _compile_stored(stored, cache, compiler)
            if compiled is not None:
                return _telling(compiled, stored.reason)
        placement = found(machine, model, search)
        cache.store(placement)
        return _telling(placement.plan.compile(compiler), reason_of(placement.plan, placement.decision))


def _compile_stored(
    stored: StoredDecision, cache: DecisionCache, compiler: _Compiler
) -> ov.CompiledModel | None:
    """What is stored; nothing where it cannot be run, and then it is dropped."""
    try:
        compiled = stored.plan.compile(compiler)
        compiled.create_infer_request()  # where HETERO finds out that submodels do not fit
    except (RuntimeError, PlacementError) as cause:
        # What OpenVINO said; a sentence for the caller follows if the device refuses the model again.
        cache.drop(f"its plan cannot be run: {openvino_reason(cause.__cause__ or cause)}")
        return None
    return compiled


def _at_once(
    machine: Machine,
    model: ov.Model,
    cache: DecisionCache | None,
    compiler: _Compiler,
    search: Callable[[Machine, ov.Model], Placement],
) -> ov.CompiledModel:
    """A decision that is kept, or what an estimate says while another process decides.

    Raises:
        OptionError: Decisions are not kept.
    """
    if cache is None:
        raise OptionError(
            "AUTOPLACE_DECIDE is BEHIND, which is of use to later compiles where decisions are kept: leave "
            "AUTOPLACE_CACHE=NO out, or name a CACHE_DIR"
        )
    stored = cache.load([op.get_friendly_name() for op in model.get_ops()])
    compiled = stored and _compile_stored(stored, cache, compiler)
    if stored is not None and compiled is not None:
        if not stored.disturbed:
            return _telling(compiled, stored.reason)
        known = f"{stored.reason}; other work disturbed what was measured"
    elif (placement := _settled(machine, model)) is not None:
        cache.store(placement)
        return _telling(placement.plan.compile(compiler), reason_of(placement.plan, placement.decision))
    else:
        compiled, known = _compile_estimate(machine, model, compiler, search)
    from ov_autoplace.plugin.behind import decide_behind  # not loaded where it is not needed

    job = decide_behind(machine, model, cache)

    def told() -> str:
        if not job.done():
            return f"{known}; being decided"
        if job.exception() is not None:
            return f"{known}; no decision can be made behind: {job.exception()}"
        return f"{known}; the next compile gets: {job.result()}"

    return _telling(compiled, told)


def _compile_estimate(
    machine: Machine, model: ov.Model, compiler: _Compiler, search: Callable[[Machine, ov.Model], Placement]
) -> tuple[ov.CompiledModel, str]:
    """What an estimate says, and how that is said."""
    options = machine.options
    if options.pins or options.memory_limits or options.executor == "OVERLAP":
        estimating = replace(machine, options=replace(options, mode="ZERO_SHOT"))
        plans: Sequence[Plan] = [search(estimating, model).plan]
    elif machine.wants_rate:
        plans = [WholePlan(device) for device in machine.devices]
    else:
        from ov_autoplace.decide.widths import estimated_plans

        plans = estimated_plans(machine, model)
    for plan in plans:
        try:
            return plan.compile(compiler), f"{plan.name}, by an estimate"
        except RuntimeError as cause:
            if plan is plans[-1]:
                raise
            _log.info("%s cannot run the model: %s", plan.name, openvino_reason(cause.__cause__ or cause))
    raise AssertionError("there are devices")


def _compile_part(machine: Machine, model: ov.Model, compile_native: Native, named: str) -> ov.CompiledModel:
    """The model as its part of a plan of several says.

    Args:
        machine: The devices.
        model: Is found in the plan by its content, unless its name is given.
        compile_native: Compiles.
        named: The plan's file, with a name behind ``#`` where that is given.
    """
    from ov_autoplace.devices.conditions import machine_lines
    from ov_autoplace.graph.model_hash import model_hash

    path, _, name = (named, "", "") if os.path.exists(named) else named.partition("#")
    plan = read_joint_plan(path)
    with naming(path, PlacementError):
        shared = Cores(plan.shared(Cores.of_this_process().processors))
        plan.check_machine(machine_lines(machine.core, plan.devices, shared))
        part = plan.part(name) if name else plan.part_of(model_hash(formed(model, NAMED)))
        compiled = compile_part(machine, model, compile_native, part)
        return _telling(compiled, f"{part.plan.name}: {path} says so")


def compile_part(machine: Machine, model: ov.Model, compile_native: Native, part: Part) -> ov.CompiledModel:
    """A model as its part of a plan of several says.

    Raises:
        PlacementError: The part is for another model or other devices.
    """
    from ov_autoplace.graph.model_hash import model_hash

    named = formed(model, NAMED)
    if model_hash(named) != part.digest:
        raise PlacementError(f"the plan has another model under the name {part.name!r}")
    part.plan.check_fits(machine.devices, [op.get_friendly_name() for op in named.get_ops()])
    options = replace(machine.options, properties={**part.properties, **machine.options.properties})
    run_passes(named, (FOLD,))
    return part.plan.compile(_Compiler(replace(machine, options=options), named, compile_native))


def found(
    machine: Machine, model: ov.Model, search: Callable[[Machine, ov.Model], Placement] = _search
) -> Placement:
    """The answer of estimates where they leave nothing to measure, else that of a search.

    Args:
        machine: The devices and the options.
        model: With its shape computations folded.
        search: Finds a placement.
    """
    placement = _settled(machine, model)
    if placement is not None:
        return placement
    try:
        return search(machine, model)
    except AutoplaceError as cause:
        if _has_choice(machine):
            raise
        _log.warning(_AS_IT_IS, machine.devices[0], cause)
        return Placement.on_device(model, machine.devices[0])


def _has_choice(machine: Machine) -> bool:
    """Whether a request is about more than one device as it is."""
    return len(machine.devices) > 1 or machine.wants_rate


def _settled(machine: Machine, model: ov.Model) -> Placement | None:
    """The only device on as many threads as estimates say; ``None`` where there is anything to decide.

    That is seen without compiling anything, so that such a model compiles as fast as on the device itself.
    """
    if _has_choice(machine):
        return None
    placement, options = Placement.on_device(model, machine.devices[0]), machine.options
    from ov_autoplace.decide.outlook import settled  # not loaded where it is not needed

    try:
        verdict = settled(machine, model)
    except AutoplaceError as cause:
        _log.warning(_AS_IT_IS, machine.devices[0], cause)
        return placement
    if verdict is None:
        return placement if options.time_budget_ms == 0 else None
    chosen = verdict.winner.name
    decision = Decision(chosen, verdict.findings, options.mode, tuple(verdict.candidates), {})
    return replace(placement, solver=chosen, plan=verdict.winner.plan, decision=decision)


def _telling(compiled: ov.CompiledModel, decision: str | Callable[[], str]) -> ov.CompiledModel:
    """A compiled model that tells how it was decided how it runs."""
    if not isinstance(compiled, PlacedModel):
        return PlacedModel(compiled, {DECISION: decision})
    compiled.told[DECISION] = decision
    return compiled


class _Compiler:
    """Compiles a model by plans in the caller's Core.

    Args:
        machine: The Core, the devices and the properties that the caller gives.
        model: Is not modified: each plan is compiled from a clone.
        compile_native: Compiles.
    """

    def __init__(self, machine: Machine, model: ov.Model, compile_native: Native) -> None:
        self._machine, self._model, self._compile_native = machine, model, compile_native

    def compile_whole(self, plan: WholePlan) -> ov.CompiledModel:
        """On as many threads as OpenVINO takes or as a width says."""
        machine, model, asked = self._machine, self._model, self._machine.options.properties
        config = single_device_config(plan.device, asked) if ":" not in plan.device else dict(asked)
        threads = {} if plan.properties else _thread_properties(machine, model, plan)
        with writing_blobs(machine.core, config) as native:
            own, given = {**native, **threads, **plan.properties}, formed(model, (MEND,))
            tell_constants_apart(machine.core, given, plan.device.rpartition(":")[2].split(","), own)
            try:
                compiled = self._compile_native(given, plan.device, own)
            except RuntimeError as cause:
                if not threads or plan.width != Width(1):
                    raise
                # The one setting under which some releases refuse what they compile otherwise.
                _log.info("%s cannot run the model: %s", plan.name, openvino_reason(cause.__cause__ or cause))
                return self.compile_whole(WholePlan(plan.device, Width(1, in_caller=True)))
        if threads.get("NUM_STREAMS") != "0":
            return compiled
        # In the calling thread, a CPU says of itself that it has none.
        return PlacedModel(compiled, {"INFERENCE_NUM_THREADS": int(threads["INFERENCE_NUM_THREADS"])})

    def compile_split(self, plan: SplitPlan) -> ov.CompiledModel:
        """For HETERO; on one device where bounded dimensions keep the model from being cut so."""
        machine, model = self._machine, self._model
        core, config = machine.core, machine.options.properties
        if not releases.facts().imports_mixes:
            config = {**config, "CACHE_DIR": ""}  # each compile would write a blob, and fail to read it
        used = [d for d in dict.fromkeys([*machine.devices, *plan.devices]) if d in plan.devices]
        placed = model.clone()
        try:
            set_affinities(placed, plan.device_of)
        except PlacementError as cause:
            device = _able_device(machine, model, plan.device_of)
            if device is None:
                raise PlacementError(f"{cause}; no device of it can run and hold the whole model") from cause
            _log.warning("the whole model runs on %s: %s", device, cause)
            return self.compile_whole(WholePlan(device))
        tell_blobs_apart(core, placed, used, config, plan.properties)
        own = {**hetero_config(core, used, config), **plan.properties}
        with writing_blobs(core, own) as native:
            try:
                return self._compile_native(placed, f"HETERO:{','.join(used)}", native)
            except RuntimeError as cause:
                from ov_autoplace.plan.fitting import refusal  # not loaded where it is not needed

                # Another release of OpenVINO may run what this one refuses.
                refused = refusal(placed, plan.device_of)
                if refused is None:
                    raise
                raise refused from cause

    def compile_lanes(self, plan: LanePlan) -> ov.CompiledModel:
        """For the package's executor."""
        from ov_autoplace.plan.scheduled import scheduled_model
        from ov_autoplace.plugin.scheduled import compile_scheduled

        model, properties = scheduled_model(self._model, plan), self._machine.options.properties
        return compile_scheduled(self._machine.core, model, properties, self._compile_native)

    def compile_pool(self, plan: PoolPlan) -> ov.CompiledModel:
        """Each member with the hint that is its own, and not the one that asked for a rate."""
        options = self._machine.options
        own = {key: value for key, value in options.properties.items() if key != HINT}
        machine = replace(self._machine, options=replace(options, properties=own))

        def compiled(member: Member) -> ov.CompiledModel:
            return member.compile(_Compiler(machine, self._model, self._compile_native))

        base = compiled(plan.base)
        if not plan.members:
            return base
        # The first copy can be the base itself.
        first = next((i for i, member in enumerate(plan.members) if member == plan.base), None)
        members = [base if i == first else compiled(member) for i, member in enumerate(plan.members)]
        return DealingModel(base, members, plan.order, plan.requests)


def _able_device(machine: Machine, model: ov.Model, device_of: Mapping[str, str]) -> str | None:
    """Of the devices that support every op and hold them all, the one that has most of them, if any."""
    devices = [device for device, _ in Counter(device_of.values()).most_common()]
    properties = {device: single_device_config(device, machine.options.properties) for device in devices}
    supported = supported_ops(machine.core, model, list(device_of), devices, properties)
    able = [device for d, device in enumerate(devices) if supported[:, d].all()]
    return next(iter(_holders(machine, model, able)), None)


def _holders(machine: Machine, model: ov.Model, devices: Sequence[str]) -> list[str]:
    """Those of ``devices`` that can hold the whole model, in the same order."""
    from ov_autoplace.measure.feasibility import feasibility_of

    options = machine.options
    feasibility = feasibility_of(machine.core, model, devices, options.shapes, options.memory_limits)
    return [device for device in devices if feasibility.holds_all(device)]


def _thread_properties(machine: Machine, model: ov.Model, plan: WholePlan) -> dict[str, str]:
    """The properties of a width, such that no exception is lost; none where the user chose the threads."""
    device, width = plan.device, plan.width
    if width is None:
        confining = machine.confining_width(device)
        return confining.properties if confining else {}
    from ov_autoplace.graph.failing import can_fail

    able = (*machine.widths(device, here=True), *([] if machine.chooses_threads(device) else [Width(1)]))
    if replace(width, in_caller=False) not in able:
        _log.info("%s runs on all threads that it is given: %s cannot be chosen", device, width.label)
        return {}
    if width.threads == 1 and not width.in_caller and can_fail(model):
        width = replace(width, in_caller=True)
    return width.properties


def hetero_config(core: ov.Core, devices: Sequence[str], config: Mapping[str, Any]) -> dict[str, Any]:
    """``config`` for HETERO, with what each device needs to be run as it was measured."""
    flat = {key: value for key, value in config.items() if key != "DEVICE_PROPERTIES"}
    own = {
        device: {key: value for key, value in properties.items() if key not in flat or value != flat[key]}
        for device, properties in device_properties(core, devices, config).items()
    }
    own = {device: properties for device, properties in own.items() if properties}
    return {**flat, "DEVICE_PROPERTIES": own} if own else flat


def _annotation(model: ov.Model, devices: Sequence[str], explicit: bool) -> Placement | None:
    """The placement that the model carries, when its devices are among those asked for."""
    placement = annotated_placement(model)
    if placement is None:
        return None
    foreign = [d for d in placement.devices if d not in devices]
    if foreign:
        _log.warning(
            "the model is annotated for %s, which is not among %s: the annotation is left aside",
            ", ".join(foreign),
            ", ".join(devices) if explicit else "the devices of this machine (" + ", ".join(devices) + ")",
        )
        return None
    return placement
