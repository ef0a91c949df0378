"""Where the native part is found, and how one is built for a release that a wheel has none for."""

from __future__ import annotations

from pathlib import Path

import openvino as ov
import pytest

from ov_autoplace._base import native
from ov_autoplace._version import OPENVINO_RELEASES, __version__
from ov_autoplace.errors import OutputError, VersionMismatchError

LATER = "2099.1.0"

# Stands for CMake: `cmake -S SOURCE -B FOLDER ...` finds sources, `cmake --build FOLDER ...` makes the file.
CMAKE = f"""#!/bin/sh
case $1 in
-S) test -f "$2/profiler/profiler_api.h" && test -d "${{5#-DOpenVINO_DIR=}}" ;;
--build) echo built >"$2/{native.NATIVE_NAME}" ;;
esac
"""


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A release that nobody knew; gives the user's cache folder."""
    monkeypatch.setattr(ov, "__version__", f"{LATER}-1-abc")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "ov-autoplace"


def put_cmake(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is called ``cmake`` from now on."""
    folder.mkdir()
    (folder / "cmake").write_text(script)
    (folder / "cmake").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def test_what_was_built_for_a_later_release_is_found_from_then_on(later, tmp_path, monkeypatch) -> None:
    put_cmake(tmp_path / "bin", CMAKE, monkeypatch)
    with pytest.raises(VersionMismatchError, match="build-native"):
        native.native_library()

    built = native.build_native()

    assert built == later / "native" / __version__ / LATER / native.NATIVE_NAME
    assert built.read_text() == "built\n"
    assert native.native_library() == str(built)
    assert [path.name for path in built.parent.iterdir()] == [native.NATIVE_NAME]


def test_a_build_that_fails_says_why_and_leaves_nothing(later, tmp_path, monkeypatch) -> None:
    failing = "#!/bin/sh\necho '-- looking'\necho 'CMake Error: no compiler was found'\nexit 1\n"
    put_cmake(tmp_path / "bin", failing, monkeypatch)

    with pytest.raises(
        VersionMismatchError, match=f"{LATER} cannot be built: CMake Error: no compiler was found"
    ):
        native.build_native()

    assert not later.exists()


def test_without_cmake_it_says_how_to_get_it(later, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(VersionMismatchError, match="pip install cmake"):
        native.build_native()


def test_where_nothing_can_be_written_it_says_so(later, tmp_path, monkeypatch) -> None:
    put_cmake(tmp_path / "bin", CMAKE, monkeypatch)
    later.parent.mkdir(parents=True)
    later.write_text("in the way")
    with pytest.raises(OutputError, match="cannot be written"):
        native.build_native()


@pytest.mark.parametrize("ask", [native.native_library, native.build_native])
def test_a_release_before_the_floor_is_refused(ask, monkeypatch) -> None:
    monkeypatch.setattr(ov, "__version__", "2025.3.0-1-abc")
    with pytest.raises(
        VersionMismatchError, match=f"OpenVINO {OPENVINO_RELEASES[0]} and later, and 2025.3.0"
    ):
        ask()
