"""Sphinx directives ``autoplace-options`` and ``autoplace-commands``: the texts of `reference` in a page."""

from __future__ import annotations

from typing import Any

import reference
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class _Generated(SphinxDirective):
    """Parses Markdown that is made from the code in the place of the directive."""

    @staticmethod
    def text() -> str:
        """The Markdown."""
        raise NotImplementedError

    def run(self) -> list[nodes.Node]:
        return self.parse_text_to_nodes(self.text(), allow_section_headings=True)


class Options(_Generated):
    """The properties of a placement."""

    text = staticmethod(reference.options_markdown)


class Commands(_Generated):
    """The command line."""

    text = staticmethod(reference.command_line_markdown)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directives."""
    app.add_directive("autoplace-options", Options)
    app.add_directive("autoplace-commands", Commands)
    return {"parallel_read_safe": True}
