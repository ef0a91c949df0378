from __future__ import annotations

import pytest

import ov_autoplace

PUBLIC = {
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
}


def test_the_public_surface_is_exactly_this():
    assert set(ov_autoplace.__all__) == PUBLIC
    for name in PUBLIC:
        assert getattr(ov_autoplace, name) is not None


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = ov_autoplace.nothing
