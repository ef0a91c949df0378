"""The report: one self-contained HTML page about a placement, a benchmark or a fine-tuning run.

The drawings are made with Bokeh, the only thing here that needs the extra ``report``. Bokeh draws on a
canvas, so that thousands of ops are no elements of the page; its script is 1.3 MB (plotly's is 4.8); it
needs neither WebGL nor ``eval``, so that the page's Content-Security-Policy can forbid everything but its own
two scripts, named by their hashes; its licence is BSD-3.

Imports ``training`` and below.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from ov_autoplace.errors import OptionError

if TYPE_CHECKING:
    from ov_autoplace.report.contents import Contents

__all__ = ["require_library", "write_report"]


def require_library(path: Path) -> None:
    """Refuse a report that could not be drawn, or would not be what its name says.

    Raises:
        OptionError: The name is that of another kind of file, or Bokeh is not installed.
    """
    if path.suffix.lower() not in (".html", ".htm"):
        raise OptionError(
            f"cannot write the report {path}: it is a page to look at; name it {path.stem or 'page'}.html"
        )
    if find_spec("bokeh") is None:
        raise OptionError(
            "a report needs the package 'bokeh'; install it with: pip install 'ov-autoplace[report]'"
        )


def write_report(contents: Contents, path: Path) -> None:
    """Write a report.

    Raises:
        OptionError: :func:`require_library` refuses it.
        OutputError: The file cannot be written.
    """
    require_library(path)
    from ov_autoplace._base.files import write_text_atomically
    from ov_autoplace.report.page import page

    write_text_atomically(path, page(contents))
