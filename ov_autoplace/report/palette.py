"""Colours and shapes of devices, told apart with any colour vision and on light and dark pages.

The colours are those of Okabe and Ito, "Color Universal Design" (2008), without the yellow, which is too
faint on white, and without vermilion, which marks transfers.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CUT", "MUTED", "DeviceStyle", "device_styles"]

CUT = "#d55e00"

MUTED = "#8a8a8a"
"""Lines and text that are readable on white and on black; the page's script sets better ones."""

_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#8c8c8c")
_SHAPES = ("circle", "square", "triangle", "diamond", "hex", "inverted_triangle")
_ON_COLOUR = ("#ffffff", "#000000", "#ffffff", "#000000", "#000000", "#000000")


@dataclass(frozen=True, slots=True)
class DeviceStyle:
    """How a device looks: its colour, the colour of text on it, and the shape of its nodes."""

    colour: str
    on_colour: str
    shape: str


def device_styles(count: int) -> list[DeviceStyle]:
    """A style per device; with more than six devices, colours come again with other shapes."""
    n = len(_COLOURS)
    return [DeviceStyle(_COLOURS[d % n], _ON_COLOUR[d % n], _SHAPES[(d + d // n) % n]) for d in range(count)]
