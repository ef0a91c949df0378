from __future__ import annotations

import subprocess
import sys

import pytest

import ov_autoplace

PUBLIC = {
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
    "profile",
    "register",
    "save_dnn_partitioning",
    "save_table",
    "save_target",
    "simulate",
    "solve",
    "unregister",
}


def test_the_public_surface_is_exactly_this():
    assert set(ov_autoplace.__all__) == PUBLIC
    for name in PUBLIC:
        assert getattr(ov_autoplace, name) is not None


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = ov_autoplace.nothing


def test_importing_loads_nothing_heavy():
    code = (
        "import sys, openvino; before = set(sys.modules); import ov_autoplace;"
        "new = set(sys.modules) - before; print([m for m in new if m.split('.')[0] in"
        " ('scipy', 'rich', 'typer', 'torch', 'dgl')])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_another_openvino_is_refused_with_the_command_that_rebuilds():
    from ov_autoplace import _version

    with pytest.raises(ov_autoplace.errors.VersionMismatchError, match=r"pip install .*--force-reinstall"):
        _version.check_openvino("2025.0.0")


def test_a_source_tree_that_was_never_built_says_so():
    from ov_autoplace import _version

    with pytest.raises(ImportError, match=r"pip install \."):
        _version.check_openvino(None)
