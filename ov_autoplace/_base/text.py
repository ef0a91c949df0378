"""Text from outside: names in models and files may hold anything, and a terminal obeys what it is sent."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

__all__ = [
    "bytes_text",
    "counted",
    "is_unicode",
    "milliseconds",
    "nearest",
    "nearest_device",
    "no_such_device",
    "printable",
    "printable_json",
    "unknown_name",
]

# Control characters (C0 but tab and line feed, DEL, C1), what turns the direction of writing, and lone halves
# of surrogate pairs, which no encoding can write.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_MISSPELT = 0.7  # the least similarity, between 0 (anything) and 1 (equal)


def printable(text: str) -> str:
    r"""``text`` for people: what a terminal would obey, or cannot show, becomes ``\x1b`` or ``\u202e``."""
    return _UNSAFE.sub(lambda found: _escaped(ord(found[0])), text)


def _escaped(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def printable_json(text: str) -> str:
    """JSON text with the same characters escaped as JSON does."""
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def counted(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun: ``1 op``, ``1,009 ops``.

    Args:
        number: How many.
        noun: Of one.
        plural: Of several, where that is not the noun with an ``s``.
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def relative_difference(difference: float | None) -> str:
    """A relative difference: ``2.7e-03``, ``0`` where there is none, and nothing where it is not known."""
    if difference is None:
        return ""
    return f"{difference:.1e}" if difference else "0"


def milliseconds(seconds: float, sign: str = "", like: float | None = None) -> str:
    """Seconds as milliseconds, without the unit: ``12.300``, and ``0.0123`` below a tenth.

    A microsecond is a large part of what small models and most of their operations take.

    Args:
        seconds: How long, or by how much.
        sign: ``+`` shows the sign of what is positive, too.
        like: Seconds whose number of decimals it gets; ``None`` = its own.
    """
    scale = abs(seconds if like is None else like) * 1e3
    text = f"{seconds * 1e3:{sign}.{4 if 0 < scale < 0.1 else 3}f}"
    return text if text.strip("+-0.") else text.lstrip("+-")  # nothing has no sign


def bytes_text(size: float) -> str:
    """A number of bytes in binary units: ``864 B``, ``46.3 KiB``."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            break
        size /= 1024
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"


def nearest(name: str, known: Sequence[str]) -> str | None:
    """The known name of which an unknown one is a misspelling; ``None`` where it is like none of them.

    Of ten letters seven have to be right, whatever their case.

    Args:
        name: The unknown one.
        known: What there is.
    """
    spelt = {one.lower(): one for one in known}
    return next((spelt[near] for near in get_close_matches(name.lower(), spelt, n=1, cutoff=_MISSPELT)), None)


def nearest_device(name: str, known: Sequence[str]) -> str | None:
    """The same of names of devices, which are so short that only case and order of letters count.

    Who names a GPU on a machine without one has not misspelt CPU.
    """
    letters = sorted(name.upper())
    return next((device for device in known if sorted(device.upper()) == letters), None)


def no_such_device(name: str, available: Sequence[str]) -> str:
    """The sentence for a device that this machine does not have, with what it has."""
    near = nearest_device(name, available)
    hint = f"did you mean {near!r}? " if near else ""
    return f"there is no device {name!r} here; {hint}available: {', '.join(available) or 'none'}"


def unknown_name(what: str, value: object, known: Iterable[str]) -> str:
    """The sentence for a name that is none of those known, with the nearest of them."""
    names = list(known)
    near = nearest(str(value), names)
    hint = f"did you mean {near!r}? " if near else ""
    return f"unknown {what} {value!r}; {hint}valid: {', '.join(names)}"


def is_unicode(text: str) -> bool:
    """Whether a text can be written at all: no lone half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
