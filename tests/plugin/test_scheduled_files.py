"""Models on lanes in files: exports, imports in other processes, IRs, and compiled submodels in CACHE_DIR."""

from __future__ import annotations

import io
import itertools
import subprocess
import sys
from pathlib import Path

import numpy as np
import openvino as ov
import pytest

from lane_models import F32, by_name, on_cpu, on_lanes, ramps, towers
from ov_autoplace.errors import ModelError
from ov_autoplace.plan.scheduled import scheduled_model
from ov_autoplace.plugin.scheduled import ScheduledModel, _in_letters
from places import CPU_PLUGIN

X = ramps()


@pytest.fixture
def core() -> ov.Core:
    return ov.Core()


IMPORT = """
import sys, io, numpy as np, openvino as ov, ov_autoplace
core = ov.Core()
core.register_plugin(sys.argv[3], "XCPU")
blob = open(sys.argv[1], "rb").read()
x = [np.linspace(-1, 1, 16, dtype=np.float32)[None] * (i + 1) for i in range(2)]
for stream in (blob, io.BytesIO(blob), ov.Tensor(np.frombuffer(blob, np.uint8))):
    compiled = core.import_model(stream, "AUTOPLACE")
    answer = compiled(x)[0]
np.save(sys.argv[2], answer)
"""


def test_an_export_is_imported_in_a_fresh_process_where_its_devices_are_known(core, tmp_path: Path) -> None:
    core.register_plugin(str(CPU_PLUGIN), "XCPU")
    model = towers()
    compiled = on_lanes(core, model, by_name(model, (0, 1, 0), devices=("CPU", "XCPU")))
    (tmp_path / "blob").write_bytes(compiled.export_model().getvalue())
    stream = io.BytesIO()
    assert compiled.export_model(stream) is None
    assert stream.getvalue() == (tmp_path / "blob").read_bytes()

    arguments = [str(tmp_path / "blob"), str(tmp_path / "answer.npy"), str(CPU_PLUGIN)]
    subprocess.run([sys.executable, "-c", IMPORT, *arguments], check=True, timeout=120)

    np.testing.assert_allclose(np.load(tmp_path / "answer.npy"), compiled(X)[0], rtol=1e-5)


def test_an_export_of_another_program_is_imported(core) -> None:
    model = towers()
    compiled = on_lanes(core, model, by_name(model, (0, 1, 0)))
    stream = io.BytesIO()
    ov.CompiledModel(compiled).export_model(stream)
    for form in (stream, stream.getvalue()):
        imported = ov.Core().import_model(form, "AUTOPLACE")
        assert isinstance(imported, ScheduledModel)
        np.testing.assert_allclose(imported(X)[0], compiled(X)[0], rtol=1e-5)


def test_an_export_is_imported_whatever_its_length(core) -> None:
    """What the CPU reads behind a model it makes out by where it stands there."""
    lengths = set()
    for letters, others in itertools.product(range(4), range(3)):
        model = towers()
        model.set_friendly_name("net" + "x" * letters)
        model.inputs[0].get_node().set_friendly_name("input" + "x" * others)
        compiled = on_lanes(core, model, by_name(model, (0, 1, 0)))
        blob, plain = compiled.export_model().getvalue(), io.BytesIO()
        ov.CompiledModel(compiled).export_model(plain)
        lengths.add(len(plain.getvalue()))
        for device in ("AUTOPLACE", "CPU"):
            np.testing.assert_allclose(core.import_model(blob, device)(X)[0], compiled(X)[0], rtol=1e-5)
    assert len(lengths) > 5


def test_a_damaged_export_is_refused_in_one_sentence(core) -> None:
    model = towers()
    blob = on_lanes(core, model, by_name(model, (0, 1, 0))).export_model().getvalue()
    devices = _in_letters(b'"devices"')
    assert devices in blob
    with pytest.raises(ModelError, match="export it anew"):
        core.import_model(blob.replace(devices, devices[:-2] + b"zz"), "AUTOPLACE")
    with pytest.raises(ModelError, match="export it anew"):
        core.import_model(blob.replace(devices, _in_letters(b'"devices\xff')), "AUTOPLACE")
    with pytest.raises(ModelError, match="export it anew"):
        core.import_model(blob[-20:], "AUTOPLACE")
    with pytest.raises(ModelError, match="'devices' must be a list"):
        core.import_model(blob.replace(devices, _in_letters(b'"d_vices"')), "AUTOPLACE")


def test_a_file_runs_through_autoplace_on_a_plain_core(core, tmp_path: Path) -> None:
    model = towers()
    ov.save_model(scheduled_model(model, by_name(model, (0, 1, 0))), tmp_path / "model.xml", False)
    compiled = core.compile_model(tmp_path / "model.xml", "AUTOPLACE", F32)
    assert isinstance(compiled, ScheduledModel)
    np.testing.assert_allclose(compiled(X)[0], on_cpu(core, model, X)[0], rtol=1e-5)
    again = core.compile_model(core.read_model(tmp_path / "model.xml"), "AUTOPLACE:CPU", F32)
    assert isinstance(again, ScheduledModel)


def test_compiled_submodels_are_cached_once_and_used_again(core, tmp_path: Path) -> None:
    model = towers(layers=4, width=64)
    x = [np.ones((1, 64), np.float32)] * 2
    plan = by_name(model, (0, 1, 0))
    expected = on_cpu(core, model, x)[0]

    np.testing.assert_allclose(on_lanes(core, model, plan, CACHE_DIR=tmp_path)(x)[0], expected, rtol=1e-5)
    blobs = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.blob")}
    assert len(blobs) == 3
    weights = 2 * 4 * 64 * 64 * 4
    assert weights < sum(path.stat().st_size for path in blobs) < weights + 60_000

    fresh = ov.Core()
    fresh.set_property({"CACHE_DIR": str(tmp_path)})
    np.testing.assert_allclose(on_lanes(fresh, model, plan)(x)[0], expected, rtol=1e-5)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.blob")} == blobs


def test_nothing_is_cached_where_it_could_not_be_encrypted(core, tmp_path: Path) -> None:
    model = towers()
    callbacks = [lambda text: text[::-1]] * 2
    compiled = on_lanes(
        core, model, by_name(model, (0, 1, 0)), CACHE_DIR=tmp_path, CACHE_ENCRYPTION_CALLBACKS=callbacks
    )
    np.testing.assert_allclose(compiled(X)[0], on_cpu(core, model, X)[0], rtol=1e-5)
    assert not list(tmp_path.glob("*.blob"))
