"""The report: one self-contained HTML page about a placement, a benchmark, a fine-tuning run, or two of them.

The drawings are made with Bokeh, the only thing here that needs the extra ``report``. Bokeh draws on a
canvas, so that thousands of ops are no elements of the page; its script is 1.3 MB (plotly's is 4.8); it
needs neither WebGL nor ``eval``, so that the page's Content-Security-Policy can forbid everything but its own
two scripts, named by their hashes; its licence is BSD-3.

Imports ``training`` and below.
"""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from ov_autoplace.errors import OptionError

if TYPE_CHECKING:
    from ov_autoplace.report.comparison import Comparison
    from ov_autoplace.report.contents import Contents

__all__ = ["require_library", "write_comparison", "write_report"]

_PAGE, _DATA = (".html", ".htm"), ".json"


def require_library(path: Path, *, is_comparison: bool = False) -> None:
    """Refuse a report that could not be drawn, or would not be what its name says.

    Args:
        path: Where it is to be written; ``.json`` needs no drawing.
        is_comparison: Whether it compares two, which is always a page.

    Raises:
        OptionError: The name is that of another kind of file, or Bokeh is not installed.
    """
    if path.suffix.lower() not in (_PAGE if is_comparison else (*_PAGE, _DATA)):
        kinds = "a page to look at (.html)" + ("" if is_comparison else ", or data for compare (.json)")
        raise OptionError(
            f"cannot write the report {path}: it is {kinds}; name it {path.stem or 'page'}.html"
        )
    if not _is_data(path) and find_spec("bokeh") is None:
        raise OptionError(
            "a report needs the package 'bokeh'; install it with: pip install 'ov-autoplace[report]'"
        )


def write_report(contents: Contents, path: Path) -> None:
    """Write a report as a page, or as data that two reports are compared by.

    Args:
        contents: What it shows.
        path: The file: a page, or where its name ends in ``.json``, the data.

    Raises:
        OptionError: :func:`require_library` refuses it.
        OutputError: The file cannot be written.
    """
    require_library(path)
    from ov_autoplace._base.files import write_text_atomically

    if _is_data(path):
        from ov_autoplace.report.record import analysis_of, record_of

        record = record_of(contents, analysis_of(contents))
        write_text_atomically(path, json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n")
        return
    from ov_autoplace.report.page import page

    write_text_atomically(path, page(contents))


def write_comparison(comparison: Comparison, path: Path) -> None:
    """Write the page about two reports; errors are those of :func:`write_report`."""
    require_library(path, is_comparison=True)
    from ov_autoplace._base.files import write_text_atomically
    from ov_autoplace.report.compare_page import compare_page

    write_text_atomically(path, compare_page(comparison))


def _is_data(path: Path) -> bool:
    return path.suffix.lower() == _DATA
