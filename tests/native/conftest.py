"""What the tests of unmodified programs share. ``make test-native`` runs them.

Nothing is skipped here: a package that is missing fails the tests that use it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import openvino as ov
import pytest

import ov_autoplace
from annotated_models import DEVICES, Annotated, convolutions, save_placed
from language_model import LanguageModel, make_language_model

# Every Core, in whatever program, adds what it finds in this file beside OpenVINO's library.
PLUGINS = Path(ov.__file__).parent / "libs" / "plugins.xml"
SECOND_DEVICE = """<ie>
  <plugins>
    <plugin name="XCPU" location="libopenvino_intel_cpu_plugin.so"/>
  </plugins>
</ie>
"""


@pytest.fixture(scope="session", autouse=True)
def _second_device() -> Iterator[None]:
    """Every OpenVINO program finds XCPU, the CPU plugin once more, without being told of it."""
    PLUGINS.write_text(SECOND_DEVICE, encoding="utf-8")
    try:
        assert {*DEVICES} <= {*ov.Core().available_devices}
        yield
    finally:
        PLUGINS.unlink()


@pytest.fixture(scope="session")
def extension() -> str:
    return ov_autoplace.extension_path()


@pytest.fixture(scope="session")
def annotated(tmp_path_factory: pytest.TempPathFactory) -> Annotated:
    """The convolutions with the second one on XCPU: three submodels."""
    model = convolutions()
    names = [op.get_friendly_name() for op in model.get_ops()]
    device_of = {name: "XCPU" if name.startswith("b") else "CPU" for name in names}
    return save_placed(model, device_of, tmp_path_factory.mktemp("annotated"))


@pytest.fixture(scope="session")
def language_model(tmp_path_factory: pytest.TempPathFactory) -> LanguageModel:
    return make_language_model(tmp_path_factory.mktemp("exported"), tmp_path_factory.mktemp("annotated"))
