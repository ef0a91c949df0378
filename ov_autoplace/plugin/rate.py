"""Compiling a model for many requests in flight, by a decision that is kept in ``CACHE_DIR``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any

import openvino as ov

from ov_autoplace.decide.machine import Machine
from ov_autoplace.devices.models import openvino_reason
from ov_autoplace.devices.names import single_device_config
from ov_autoplace.errors import AutoplaceError, PlacementError
from ov_autoplace.graph.tied_weights import untie_weights
from ov_autoplace.placement.annotation import set_affinities
from ov_autoplace.placement.bounded import open_bounded_crossings
from ov_autoplace.placement.placement import Placement
from ov_autoplace.placement.rate_plan import HINT, RateMember, RatePlan
from ov_autoplace.plugin.blob_lock import cache_lock, tell_blobs_apart, writing_blobs
from ov_autoplace.plugin.dealing import DealingModel
from ov_autoplace.plugin.decision_cache import DecisionCache

__all__ = ["compile_for_rate"]

_SCHEMA = 2

Native = Callable[[ov.Model, str, Mapping[str, Any]], ov.CompiledModel]


def _search(machine: Machine, model: ov.Model) -> Placement:
    from ov_autoplace.decide.rate import place_for_rate

    return place_for_rate(machine, model)


def _confirm(machine: Machine, model: ov.Model, plan: RatePlan) -> bool | None:
    from ov_autoplace.decide.rate_again import confirm_rate
    from ov_autoplace.graph.prepare import prepare

    return confirm_rate(machine, prepare(model, machine.options.shapes), plan)


def compile_for_rate(
    machine: Machine,
    model: ov.Model,
    compile_native: Native,
    search: Callable[[Machine, ov.Model], Placement] = _search,
    confirm: Callable[[Machine, ov.Model, RatePlan], bool | None] = _confirm,
) -> ov.CompiledModel:
    """Decide how a model runs many requests, and compile it so.

    Args:
        machine: The caller's Core, real devices, and the options, among whose properties is the hint.
        model: Belongs to this function, has unique names and its shape computations folded.
        compile_native: Compiles.
        search: Finds a placement with a plan where none is known.
        confirm: Checks a plan that was found on a busy machine; ``None`` where that is not possible.

    Raises:
        OptionError: An option is about one short request.
    """
    machine.check_rate()
    # The hint is among the properties, which are part of the key: this is no entry of a decision for latency.
    cache = DecisionCache.of(machine.core, model, machine.devices, machine.options)
    # Who waited for another process to decide finds its decision.
    with nullcontext() if cache is None else cache_lock(cache.lock):
        plan = None if cache is None else _stored(cache, machine, model, confirm)
        if plan is not None:
            try:
                return _compiled(machine, model, plan, compile_native)
            except RuntimeError as cause:
                assert cache is not None
                cache.drop(f"its plan cannot be run: {openvino_reason(cause)}")
        placement = search(machine, model)
        if placement.rate is None:
            raise PlacementError("the placement was not made for a rate of requests")
        if cache is not None:
            decision = placement.decision
            disturbed = decision is not None and decision.disturbed
            _keep(cache, placement.rate, str(decision or ""), disturbed=disturbed)
        return _compiled(machine, model, placement.rate, compile_native)


def _compiled(machine: Machine, model: ov.Model, plan: RatePlan, compile_native: Native) -> ov.CompiledModel:
    own = {key: value for key, value in machine.options.properties.items() if key != HINT}
    with writing_blobs(machine.core, own) as config:
        base = _compile_member(machine, model, plan.base, compile_native, config)
        members: list[ov.CompiledModel] = []
        for member in plan.dealt:
            # The first copy can be the base itself.
            is_base = member == plan.base and base not in members
            members.append(
                base if is_base else _compile_member(machine, model, member, compile_native, config)
            )
    if members:
        return DealingModel(base, members, plan.order, plan.requests)
    return base


def _compile_member(
    machine: Machine, model: ov.Model, member: RateMember, compile_native: Native, config: Mapping[str, Any]
) -> ov.CompiledModel:
    if not member.device_of:
        untie_weights(model := model.clone())
        own = config if ":" in member.device else single_device_config(member.device, config)
        return compile_native(model, member.device, {**own, **member.properties})
    placed = model.clone()
    set_affinities(placed, open_bounded_crossings(placed, dict(member.device_of)))
    untie_weights(placed)
    devices = member.device.partition(":")[2].split(",")
    tell_blobs_apart(machine.core, placed, devices, config, member.properties)
    flat = {key: value for key, value in config.items() if key != "DEVICE_PROPERTIES"}
    return compile_native(placed, member.device, {**flat, **member.properties})


def _keep(cache: DecisionCache, plan: RatePlan, reason: str, *, disturbed: bool = False) -> None:
    cache.keep(
        {
            "rate_schema": _SCHEMA,
            "chosen": plan.name,
            "decision": reason,
            "disturbed": disturbed,
            "plan": plan.to_json(),
        }
    )


def _stored(
    cache: DecisionCache,
    machine: Machine,
    model: ov.Model,
    confirm: Callable[[Machine, ov.Model, RatePlan], bool | None],
) -> RatePlan | None:
    """The plan in the cache; one that was found on a busy machine has to win a short race first."""

    def parse(data: Mapping[str, Any]) -> tuple[RatePlan, bool]:
        disturbed = data.get("disturbed")
        if data.get("rate_schema") != _SCHEMA or not isinstance(disturbed, bool):
            raise AutoplaceError("it has another schema")
        plan = RatePlan.from_json(data.get("plan"))
        _check(plan, cache, model)
        return plan, disturbed

    found = cache.read(parse)
    if found is None:
        return None
    plan, disturbed = found
    return cache.checked(
        plan,
        disturbed,
        lambda answer: confirm(machine, model, answer),
        lambda reason: _keep(cache, plan, reason),
    )


def _check(plan: RatePlan, cache: DecisionCache, model: ov.Model) -> None:
    """Refuse a plan for other devices or other ops.

    Raises:
        PlacementError: It is one.
    """
    ops = {op.get_friendly_name() for op in model.get_ops()}
    for member in (plan.base, *plan.dealt):
        _, _, listed = member.device.partition(":")
        for device in listed.split(",") if listed else [member.device]:
            if device not in cache.devices:
                raise PlacementError(f"it runs on {device!r}, not on {', '.join(cache.devices)}")
        if member.device_of and set(member.device_of) != ops:
            raise PlacementError("it is for other ops")
