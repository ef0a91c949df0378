"""Costs of operations from every kind of machine, to train the network of costs on."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence

from ov_autoplace.fleet.models import share_model
from ov_autoplace.fleet.run import FleetRun
from ov_autoplace.measure.collect import NamedModel

__all__ = ["collect_on_fleet"]


def collect_on_fleet(
    run: FleetRun, models: Sequence[NamedModel], seconds: float
) -> dict[str, dict[str, bytes]]:
    """Have machines of each kind measure the same models.

    Args:
        run: The machines.
        models: What is measured.
        seconds: After which a machine begins no further model.

    Returns:
        The file of each machine, as :func:`ov_autoplace.measure.collect.collect` writes it, by machine, by
        kind. What is missing is said by the groups of the run.
    """
    shared = [share_model(named.model) for named in models]
    told = [
        {"name": named.name, "family": named.family, "model": one.digest}
        for named, one in zip(models, shared, strict=True)
    ]
    requests = {
        name: {"devices": list(group.kind.devices), "models": told, "seconds": seconds}
        for name, group in run.groups.items()
    }
    data = tuple(part for one in shared for part in one.data)
    answers = run.on_each("collect", "ov_autoplace.fleet.on_machine:collect", requests, data)
    found: dict[str, dict[str, bytes]] = {}
    for name, by_machine in answers.items():
        for machine, answer in by_machine.items():
            try:
                content = base64.b64decode(str(answer.get("costs", "")), validate=True)
            except binascii.Error as cause:
                run.groups[name].missing.append(f"collect: {machine}: its answer is no file: {cause}")
            else:
                found.setdefault(name, {})[machine] = content
    return found
