"""What this package takes for granted of OpenVINO beyond what OpenVINO documents, an assumption a test.

With a new release these fail first, and their names say what it does otherwise; a comment says who relies on
it. Whether HETERO still cuts models by our partition's rules is asked in ``tests/plan/test_partition.py``.
"""

from __future__ import annotations

import inspect
import io
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

import ov_autoplace
from full_disk import full_disk
from ov_autoplace import _core
from ov_autoplace._base import releases

LIBRARIES = Path(ov.__file__).parent / "libs"


@pytest.fixture
def model() -> ov.Model:
    entry = ops.parameter([2, 8], name="entry")
    product = ops.matmul(entry, ops.constant(np.ones((8, 8), np.float32)), False, False, name="product")
    return ov.Model([ops.relu(product, name="positive")], [entry], "net")


@pytest.fixture
def mix(model: ov.Model, unequal_pair: ov.Core) -> ov.CompiledModel:
    """The ReLU on XCPU, all before it on CPU."""
    for op in model.get_ops():
        is_behind = op.get_type_name() in ("Relu", "Result")
        op.get_rt_info()["affinity"] = "XCPU" if is_behind else "CPU"
    return unequal_pair.compile_model(model, "HETERO:XCPU,CPU", {"PERF_COUNT": True})


def test_the_native_part_asks_for_the_library_of_this_release_and_the_core_for_none() -> None:
    pattern = re.compile(rb"libopenvino\.so\.\d+")
    (wanted,) = set(pattern.findall(Path(ov_autoplace.extension_path()).read_bytes()))

    assert (LIBRARIES / wanted.decode()).is_file()
    assert not pattern.search(Path(_core.__file__).read_bytes())


@pytest.mark.parametrize("plugin", ["hetero", "intel_cpu"])
def test_plugins_lie_beside_the_library_under_these_names(plugin: str) -> None:
    # plugin/device.py registers HETERO once more, AUTOPLACE_EXTRA_DEVICES the CPU's plugin.
    assert (LIBRARIES / f"libopenvino_{plugin}_plugin.so").is_file()


@pytest.mark.parametrize(
    ("method", "parameters"),
    [
        ("compile_model", ["self", "model", "device_name", "config", "weights"]),
        ("import_model", None),
        ("query_model", None),
        ("get_property", None),
        ("set_property", None),
    ],
)
def test_the_core_has_the_methods_that_are_wrapped(method: str, parameters: list[str] | None) -> None:
    # plugin/device.py; what the C++ bindings inherit has no signature.
    ov_autoplace.unregister()
    try:
        wrapped = getattr(ov.Core, method)
    finally:
        ov_autoplace.register()
    if parameters is not None:
        assert list(inspect.signature(wrapped).parameters) == parameters


def test_a_name_that_is_taken_is_refused_with_these_words() -> None:
    # plugin/device.py tells this failure from others.
    core = ov.Core()
    core.register_plugin(str(LIBRARIES / "libopenvino_intel_cpu_plugin.so"), "XCPU")
    with pytest.raises(RuntimeError, match="already registered"):
        core.register_plugin(str(LIBRARIES / "libopenvino_intel_cpu_plugin.so"), "XCPU")


def test_what_is_private_or_of_a_tool_and_used_is_there() -> None:
    # plugin/annotated_files.py; plugin/benchmark_app.py; CMakeLists.txt
    from openvino._offline_transformations import apply_fused_names_cleanup
    from openvino.tools.benchmark import benchmark, main
    from openvino.tools.benchmark.utils import utils
    from openvino.utils import get_cmake_path

    assert callable(apply_fused_names_cleanup)
    assert benchmark.Core is ov.Core
    assert callable(main.main)
    assert "HETERO" in utils.meta_plugins
    assert (Path(get_cmake_path()) / "OpenVINOConfig.cmake").is_file()


def test_notes_of_ops_survive_a_file_under_this_kind_of_name_only(model: ov.Model, tmp_path: Path) -> None:
    # plan/annotation.py, csrc/native/extension/marks.cpp
    for op in model.get_ops():
        op.get_rt_info()["user_data:autoplace"] = "CPU"
        op.get_rt_info()["affinity"] = "CPU"
    ov.save_model(model, tmp_path / "net.xml")

    read = ov.Core().read_model(tmp_path / "net.xml").get_ops()

    assert {op.get_rt_info()["user_data:autoplace"].astype(str) for op in read} == {"CPU"}
    assert not any("affinity" in op.get_rt_info() for op in read)


def test_a_file_says_where_its_weights_are_in_these_words(model: ov.Model, tmp_path: Path) -> None:
    # plugin/annotated_files.py checks with it that a full disk cut nothing off.
    ov.save_model(model, tmp_path / "net.xml", compress_to_fp16=False)

    (found,) = re.findall(r' shape="[^"]*" offset="(\d+)" size="(\d+)"', (tmp_path / "net.xml").read_text())

    assert sum(map(int, found)) <= (tmp_path / "net.bin").stat().st_size
    assert int(found[1]) == 8 * 8 * 4


def test_hetero_follows_affinities_and_counts_its_submodels(mix: ov.CompiledModel) -> None:
    # everything that is placed
    assert mix.get_property("HETERO_NUMBER_OF_SUBMODELS") == 2
    assert set(mix.get_property("EXECUTION_DEVICES")) == {"XCPU", "CPU"}


def test_hetero_calls_nodes_by_their_submodel(mix: ov.CompiledModel) -> None:
    # csrc/native/profiler/node_times.cpp
    request = mix.create_infer_request()
    request.infer([np.ones((2, 8), np.float32)])

    names = [info.node_name for info in request.profiling_info]

    assert {int(re.match(r"subgraph(\d+): ", name)[1]) for name in names} == {0, 1}


def test_what_hetero_exports_begins_with_its_name(mix: ov.CompiledModel) -> None:
    # plugin/device.py
    stream = io.BytesIO()
    mix.export_model(stream)

    assert b"<hetero " in stream.getvalue()[:64]


def test_the_runtime_model_says_what_was_fused_and_how_long_it_took(model: ov.Model) -> None:
    # csrc/native/profiler/node_times.cpp, measure/attribution.py
    compiled = ov.Core().compile_model(model, "CPU", {"PERF_COUNT": True})
    compiled([np.ones((2, 8), np.float32)])

    notes = [op.get_rt_info() for op in compiled.get_runtime_model().get_ops()]
    fused = [note["originalLayersNames"].astype(str).split(",") for note in notes]

    assert any({"product", "positive"} <= set(names) for names in fused)
    assert all({"layerType", "execTimeMcs"} <= set(note.keys()) for note in notes)


def test_a_cpu_under_hetero_can_be_told_to_keep_its_own_threads() -> None:
    # devices/names.py
    assert ov.Core().get_property("CPU", "EXCLUSIVE_ASYNC_REQUESTS") in (False, "NO")


def scaled(factor: float) -> ov.Model:
    """Models that differ in a weight alone."""
    entry = ops.parameter([8], name="entry")
    weight = ops.constant(np.full(8, factor, np.float32), name="weight")
    result = ops.result(ops.multiply(entry, weight, name="product"))
    result.set_friendly_name("result")
    return ov.Model([result], [entry], "net")


def upper_bound_read(folder: Path) -> float:
    """The infinite upper bound of a Clamp, written and read."""
    entry = ops.parameter([8], name="entry")
    ov.save_model(ov.Model([ops.clamp(entry, 0.0, float("inf"), name="bounded")], [entry]), folder / "b.xml")
    ops_read = {op.get_friendly_name(): op for op in ov.Core().read_model(folder / "b.xml").get_ops()}
    return float(ops_read["bounded"].get_attributes()["max"])


def works(call: Callable[[], object]) -> bool:
    try:
        call()
    except (RuntimeError, TypeError):
        return False
    return True


def test_the_table_of_releases_is_true_here(
    model: ov.Model, mix: ov.CompiledModel, unequal_pair: ov.Core, tmp_path: Path
) -> None:
    # ov_autoplace/_base/releases.py
    exported = io.BytesIO()
    mix.export_model(exported)
    exported.seek(0)
    library = Path(ov_autoplace.extension_path())
    nonsense = {"INFERENCE_PRECISION_HINT": "f12"}
    for factor in (1, 2):
        unequal_pair.compile_model(scaled(factor), "CPU", {"CACHE_DIR": str(tmp_path)})

    with full_disk(512):
        stores = works(lambda: ov.save_model(model, tmp_path / "net.xml"))

    found = replace(  # how HETERO cuts is asked in tests/plan/test_partition.py
        releases.facts(),
        imports_mixes=works(lambda: unequal_pair.import_model(exported, "HETERO:XCPU,CPU")),
        tells_blobs_apart=len(list(tmp_path.glob("*.blob"))) == 2,
        reads_infinite_numbers=upper_bound_read(tmp_path) == float("inf"),
        reports_full_disks=not stores,
        refuses_unknown_precisions=not works(lambda: unequal_pair.compile_model(model, "CPU", nonsense)),
        adds_extensions_by_path=works(lambda: ov.Core().add_extension(library)),
    )

    assert found == releases.facts()
