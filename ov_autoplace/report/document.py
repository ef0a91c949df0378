"""An HTML document of sections around Bokeh's drawings.

It holds two scripts, Bokeh's and the page's own, which the Content-Security-Policy names by their hashes;
everything else is data in ``<script type="application/json">``, which no browser runs. What is large and
asked for op by op is packed (gzip, base64) and unpacked by the page's script.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from html import escape
from importlib.resources import files
from typing import Any

from bokeh.embed import json_item
from bokeh.plotting import figure
from bokeh.resources import Resources

from ov_autoplace._version import __version__

__all__ = ["chart", "document", "facts_list", "header", "safe_json", "section"]

_SCRIPTS = ("common.js", "ops.js", "explorer.js", "page.js")  # each may use what those before it define


def header(title: str, answer: str) -> str:
    """The head of the page."""
    return (
        f"<header><p>ov-autoplace {escape(__version__)}</p><h1>{escape(title)}</h1>"
        f'<p class="answer">{escape(answer)}</p></header>'
    )


def section(title: str, *parts: str, tag: str = "") -> str:
    """A part of the page with its heading; nothing where all parts are empty.

    Args:
        title: The heading.
        parts: HTML.
        tag: Where its numbers come from.
    """
    inside = "".join(parts)
    tagged = f'<span class="tag">{escape(tag)}</span>' if tag else ""
    return f"<section><div><h2>{escape(title)}</h2>{tagged}</div>{inside}</section>" if inside else ""


def facts_list(facts: Sequence[tuple[str, str]]) -> str:
    """Names over values."""
    cells = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in facts)
    return f"<dl>{cells}</dl>"


def chart(charts: list[figure], drawn: figure) -> str:
    """The place of a drawing, which joins the others."""
    charts.append(drawn)
    return f'<div class="chart" id="{escape(drawn.name)}"></div>'


def document(
    title: str,
    body: Sequence[str],
    charts: Sequence[figure],
    data: Mapping[str, Any],
    packed: Mapping[str, Any] | None = None,
) -> str:
    """The whole document.

    Args:
        title: Its title.
        body: HTML of its sections.
        charts: The drawings, which have places in the body.
        data: What else the script reads.
        packed: What it unpacks when it is asked for.
    """
    assets = files("ov_autoplace.report")
    own = "\n".join(assets.joinpath(name).read_text("utf-8") for name in _SCRIPTS)
    # The script's own text must not end its element either.
    scripts = [
        script.replace("</script", "<\\/script").replace("\r\n", "\n")
        for script in (*Resources(mode="inline", components=["bokeh"]).js_raw[:1], own)
    ]
    policy = (
        f"default-src 'none'; script-src {' '.join(_hashes(scripts))}; style-src 'unsafe-inline'; "
        "img-src data: blob:; font-src data:; base-uri 'none'; form-action 'none'"
    )
    made = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    drawn = [{"item": json_item(drawing), "target": drawing.name} for drawing in charts]
    return "\n".join(
        [
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">',
            f"<title>{escape(title)}</title>",
            f"<style>{assets.joinpath('page.css').read_text('utf-8')}</style>\n</head>\n<body>\n<main>",
            *body,
            f"<footer>Made on {made} by ov-autoplace {escape(__version__)}.</footer>\n</main>",
            _data("data", safe_json({"charts": drawn, **data})),
            *([] if packed is None else [_data("ops", safe_json(_packed(packed)))]),
            *(f"<script>{script}</script>" for script in scripts),
            "</body>\n</html>\n",
        ]
    )


def safe_json(value: Any) -> str:
    """JSON that cannot end the element that it is in, nor open a comment or another element there."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _packed(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def _data(name: str, text: str) -> str:
    return f'<script type="application/json" id="{name}">{text}</script>'


def _hashes(scripts: Iterable[str]) -> list[str]:
    digests = (hashlib.sha256(script.encode()).digest() for script in scripts)
    return [f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests]
