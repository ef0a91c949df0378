"""What the tests of unmodified programs share. ``make test-native`` runs them.

Nothing is skipped here: a package that is missing fails the tests that use it.
"""

from __future__ import annotations

import openvino as ov
import pytest

import ov_autoplace
from annotated_models import DEVICES, Annotated, convolutions, save_placed
from language_model import LanguageModel, make_language_model


@pytest.fixture(scope="session", autouse=True)
def _second_device() -> None:
    """Every OpenVINO program here must find XCPU without being told of it."""
    if not {*DEVICES} <= {*ov.Core().available_devices}:
        pytest.exit("OpenVINO lists no XCPU in this environment; run `make test-native`", returncode=1)


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
