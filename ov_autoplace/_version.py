"""The package's version and what it was built against."""

from __future__ import annotations

__all__ = ["__version__", "built_against", "check_openvino"]

__version__ = "0.1.0"


def check_openvino(built: str | None) -> None:
    """Refuse an OpenVINO that the C++ core was not built against, before the dynamic linker does.

    Args:
        built: See :func:`built_against`.

    Raises:
        VersionMismatchError: Another version is installed, or the core was never built.
    """
    import openvino as ov

    from ov_autoplace.errors import VersionMismatchError

    if built is None:
        raise VersionMismatchError(
            "the C++ core of ov_autoplace is not built; run `pip install .` in the source folder "
            "and start Python from another folder"
        )
    installed = ov.__version__.split("-")[0]
    if installed != built:
        raise VersionMismatchError(
            f"ov_autoplace was built against openvino {built}, but {installed} is installed; rebuild it with "
            f"`pip install --force-reinstall --no-cache-dir .` in the source folder, "
            f"or run `pip install openvino=={built}`"
        )


def built_against() -> str | None:
    """The OpenVINO that the C++ core was built against; ``None`` where it was never built."""
    try:
        from ov_autoplace._build_info import OPENVINO_VERSION
    except ModuleNotFoundError:
        return None
    return str(OPENVINO_VERSION)
