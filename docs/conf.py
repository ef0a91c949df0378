"""Configuration of the documentation site; `make docs` builds it into build/docs."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import numpy.typing

from ov_autoplace import __version__
from ov_autoplace._base import arrays as _arrays

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools" / "docs"))

project = "ov-autoplace"
copyright = "the ov-autoplace authors"  # noqa: A001 - the name that Sphinx wants
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_reference"]

# Headings get the anchors that they have on a code host.
myst_heading_anchors = 3

autodoc_mock_imports = ["torch", "dgl", "safetensors"]  # the extra `train` is not needed to read about it
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
autoclass_content = "class"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = False
napoleon_attr_annotations = False  # descriptions give types and shapes

# A link that leads nowhere fails the build. What others document cannot be looked up without a network.
nitpicky = True
nitpick_ignore = [
    # Constants without a description of their own.
    ("py:data", "MUST_RULES"),
    ("py:data", "ov_autoplace.graph.rules.MUST_RULES"),
]
nitpick_ignore_regex = [
    ("py:.*", r"(openvino|ov|numpy|np|torch|io|os|pathlib|collections|contextlib|typing)\..*"),
    ("py:class", r"Path|Source|FloatArray|IntArray"),  # the standard library's, and aliases of ours
    ("py:class", r".*\b_(Result|T|T_co)"),  # type variables
    ("py:class", r"Profiler|Executable|Pool|RaceResult|ov_autoplace\._core\..*"),  # the C++ core
    ("py:class", r"ov_autoplace\.graph\.records\..*"),  # made of a model on the way to its graph
    ("py:class", r"ov_autoplace\.decide\.context\..*"),  # of those who write a stage
    ("py:meth", r"Executable\..*"),
    ("py:attr", r"devices|Wiring\.bonds"),  # set in a constructor; said in the class's description
]

html_theme = "furo"
html_title = f"ov-autoplace {version}"
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
# The theme's own fonts are those of the system, and nothing is fetched from elsewhere.
html_theme_options = {"navigation_with_keys": False}

# Array types are shown by name: what they stand for takes lines, and descriptions say what is in them.
for _module, _names in ((numpy.typing, ["ArrayLike"]), (_arrays, ["BoolArray", "FloatArray", "IntArray"])):
    for _name in _names:
        setattr(_module, _name, type(_name, (), {"__module__": "numpy.typing"}))


def setup(app: Any) -> None:
    """Connect what the docstrings of this project need beyond Sphinx."""
    app.connect("autodoc-process-docstring", _prepare_docstring, priority=400)  # before napoleon
    app.connect("missing-reference", _resolve_public_name)


def _prepare_docstring(
    app: Any, what: str, name: str, documented: Any, options: Any, lines: list[str]
) -> None:
    """Attributes that share a description get one each; a constant's first words are not its type."""
    if what in ("data", "attribute"):
        lines[0] = lines[0].replace(": ", ", ", 1)
    for i in reversed(range(len(lines))):
        shared = re.match(r"( +)((?:\w+, )+\w+): ", lines[i])
        if shared is None:
            continue
        end = i + 1
        while end < len(lines) and lines[end].startswith(shared[1] + "    "):
            end += 1
        text = [lines[i][shared.end() :], *lines[i + 1 : end]]
        names = shared[2].split(", ")
        lines[i:end] = [line for one in names for line in (f"{shared[1]}{one}: {text[0]}", *text[1:])]


def _resolve_public_name(app: Any, env: Any, node: Any, content: Any) -> Any:
    """``ov_autoplace.place`` and ``Target`` are documented where they are defined."""
    import ov_autoplace

    name = node["reftarget"].removeprefix("ov_autoplace.")
    if node.get("refdomain") != "py" or name not in ov_autoplace.__all__:
        return None
    home = f"{getattr(ov_autoplace, name).__module__}.{name}"
    return env.domains["py"].resolve_xref(
        env, node["refdoc"], app.builder, node["reftype"], home, node, content
    )
