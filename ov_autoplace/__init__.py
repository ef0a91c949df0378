"""Decides which device runs each operation of an OpenVINO model, and proves the answer by measurement.

Importing this package makes the device name ``AUTOPLACE`` known to ``openvino.Core``::

    compiled = openvino.Core().compile_model("model.xml", "AUTOPLACE")

Everything else is loaded when it is first used, the C++ core (``_core``) too.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ov_autoplace import errors
from ov_autoplace._version import __version__
from ov_autoplace.plugin.device import register, unregister

if TYPE_CHECKING:
    from ov_autoplace.application.answer import ApplicationPlan
    from ov_autoplace.application.place import place_application
    from ov_autoplace.application.workload import Application
    from ov_autoplace.cost.dnn_partitioning import load_dnn_partitioning
    from ov_autoplace.cost.dnn_partitioning_export import save_dnn_partitioning
    from ov_autoplace.cost.generic_target import generic_target
    from ov_autoplace.cost.table import CostTable
    from ov_autoplace.cost.table_json import load_table, save_table
    from ov_autoplace.cost.target import Target
    from ov_autoplace.cost.target_json import catalogue, load_target, save_target
    from ov_autoplace.decide.place import place
    from ov_autoplace.devices.extension import extension_path
    from ov_autoplace.graph.computation_graph import ComputationGraph
    from ov_autoplace.graph.extract import extract
    from ov_autoplace.measure.profiled import profile
    from ov_autoplace.plan.annotation import annotate
    from ov_autoplace.plan.fitting import count_subgraphs
    from ov_autoplace.plan.placement import Placement, Schedule
    from ov_autoplace.plan.simulator import simulate
    from ov_autoplace.plugin.behind import wait
    from ov_autoplace.plugin.passes import AutoplacePass
    from ov_autoplace.solvers import solve
    from ov_autoplace.training.finetune import finetune

__all__ = [
    "Application",
    "ApplicationPlan",
    "AutoplacePass",
    "ComputationGraph",
    "CostTable",
    "Placement",
    "Schedule",
    "Target",
    "__version__",
    "annotate",
    "catalogue",
    "count_subgraphs",
    "errors",
    "extension_path",
    "extract",
    "finetune",
    "generic_target",
    "load_dnn_partitioning",
    "load_table",
    "load_target",
    "place",
    "place_application",
    "profile",
    "register",
    "save_dnn_partitioning",
    "save_table",
    "save_target",
    "simulate",
    "solve",
    "unregister",
    "wait",
]

_HOME = {
    "Application": "application.workload",
    "ApplicationPlan": "application.answer",
    "AutoplacePass": "plugin.passes",
    "ComputationGraph": "graph.computation_graph",
    "CostTable": "cost.table",
    "Placement": "plan.placement",
    "Schedule": "plan.placement",
    "Target": "cost.target",
    "annotate": "plan.annotation",
    "catalogue": "cost.target_json",
    "count_subgraphs": "plan.fitting",
    "extension_path": "devices.extension",
    "extract": "graph.extract",
    "finetune": "training.finetune",
    "generic_target": "cost.generic_target",
    "load_dnn_partitioning": "cost.dnn_partitioning",
    "load_table": "cost.table_json",
    "load_target": "cost.target_json",
    "place": "decide.place",
    "place_application": "application.place",
    "profile": "measure.profiled",
    "save_dnn_partitioning": "cost.dnn_partitioning_export",
    "save_table": "cost.table_json",
    "save_target": "cost.target_json",
    "simulate": "plan.simulator",
    "solve": "solvers",
    "wait": "plugin.behind",
}

register()


def __getattr__(name: str) -> Any:
    value: Any
    if name == "_core":
        from ov_autoplace._base.native import load_core

        value = load_core()
    elif name in _HOME:
        value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
