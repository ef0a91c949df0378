"""What a user does first with an installed wheel; `build.py` runs it where no source and no compiler is.

It uses nothing but what the wheel and its requirements bring.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import numpy as np
import openvino as ov
from openvino import opset13 as ops

import ov_autoplace

RELEASE = ov.__version__.split("-")[0]
COMPILERS = ("c++", "cc", "clang", "clang++", "g++", "gcc", "cmake", "ninja", "make")
EXPECTED = (
    "ov_autoplace/py.typed",
    "ov_autoplace/_core.pyi",
    "ov_autoplace/native/source/CMakeLists.txt",
    "ov_autoplace/cost/autoplace-costs.npz",
    "ov_autoplace/cost/catalogue/core-ultra-7-155h.json",
)
FOLDERS = (
    "ov_autoplace",
    "ov_autoplace_command",
    "..",
)  # and what pip writes; the command is in `../../../bin`

F32 = {"INFERENCE_PRECISION_HINT": "f32"}


def check_contents() -> None:
    """The files that belong into an installation, and no others."""
    files = {file.as_posix() for file in metadata.files("ov-autoplace") or ()}
    missing = [name for name in EXPECTED if name not in files]
    assert not missing, f"the wheel lacks {missing}"
    assert f"native/{RELEASE}/" in ov_autoplace.extension_path()
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in files), "the wheel has no licence"
    strange = [f for f in files if f.split("/")[0] not in FOLDERS and ".dist-info/" not in f]
    assert not strange, f"the wheel has {strange}"
    sources = [
        file
        for file in files
        if file.endswith((".cpp", ".hpp", ".txt", ".toml"))
        and ".dist-info/" not in file
        and not file.startswith("ov_autoplace/native/source/")
    ]
    assert not sources, f"the wheel has {sources}"
    assert Path(ov_autoplace.__file__).is_relative_to(sys.prefix), ov_autoplace.__file__


def network() -> ov.Model:
    """Two layers side by side, each with a ReLU, and their sum."""
    random = np.random.default_rng(0)
    entry = ops.parameter([4, 64], name="entry")
    branches = []
    for name in ("first", "second"):
        weights = ops.constant(random.standard_normal((64, 64), dtype=np.float32))
        branches.append(ops.relu(ops.matmul(entry, weights, False, False), name=name))
    return ov.Model([ops.add(*branches)], [entry], "network")


def main() -> None:
    found = [name for name in COMPILERS if shutil.which(name)]
    assert not found, f"this is no trial: {found} can be used"
    check_contents()

    core, model = ov.Core(), network()
    image = np.ones((4, 64), dtype=np.float32)
    expected = core.compile_model(model, "CPU", F32)([image])[0]

    def check(compiled: ov.CompiledModel, devices: set[str] | None = None) -> None:
        """It computes what one device computes, on these devices."""
        assert devices is None or set(compiled.get_property("EXECUTION_DEVICES")) == devices
        np.testing.assert_allclose(compiled([image])[0], expected, rtol=1e-4, atol=1e-4)

    for _ in range(2):  # measured, and then from what that kept
        check(ov.Core().compile_model(model, "AUTOPLACE", {**F32, "CACHE_DIR": "blobs"}))

    placement = ov_autoplace.place(model, mode="ZERO_SHOT", target="core-ultra-7-155h", solvers=())
    assert placement.decision is not None

    plugin = str(next((Path(ov.__file__).parent / "libs").glob("libopenvino_intel_cpu_plugin.so")))
    core.register_plugin(plugin, "XCPU")
    pins = {"first": "CPU", "second": "XCPU"}
    for executor in ("HETERO", "OVERLAP"):
        asked = {"AUTOPLACE_EXECUTOR": executor, "AUTOPLACE_PINS": pins, **F32}
        check(core.compile_model(model, "AUTOPLACE:XCPU,CPU", asked), {"XCPU", "CPU"})

    # A program that knows the library alone.
    ov.save_model(model, "network.xml", compress_to_fp16=False)
    command = [Path(sys.executable).with_name("ov-autoplace"), "annotate", "network.xml", "-d", "XCPU,CPU"]
    command += [word for name, device in pins.items() for word in ("--pin", f"{name}={device}")]
    subprocess.run(command, check=True, env={**os.environ, "AUTOPLACE_EXTRA_DEVICES": "XCPU=CPU"})
    plain = ov.Core()
    plain.register_plugin(plugin, "XCPU")
    plain.add_extension(ov_autoplace.extension_path())
    check(plain.compile_model("network.autoplace.xml", "HETERO:XCPU,CPU", F32), {"XCPU", "CPU"})
    print(
        f"ov-autoplace {ov_autoplace.__version__} works with Python {sys.version.split()[0]} "
        f"and OpenVINO {RELEASE}"
    )


if __name__ == "__main__":
    main()
