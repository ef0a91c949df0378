"""Unique friendly names: HETERO keys affinities by friendly name, so a duplicate would lose its device."""

from __future__ import annotations

from collections.abc import Iterable

import openvino as ov

__all__ = ["make_names_unique", "unique_names"]


def unique_names(names: Iterable[str]) -> list[str]:
    """The names with every repetition renamed to ``name_1``, ``name_2``, ... (the first free number).

    The first bearer of a name keeps it, and no new name equals any given one, so the answer depends
    on the given order only. A NUL, at which an IR ends a name, is written as a backslash and a zero.
    """
    wanted = [name.replace("\0", "\\0") if "\0" in name else name for name in names]
    taken = set(wanted)
    if len(taken) == len(wanted):
        return wanted
    seen: set[str] = set()
    next_number: dict[str, int] = {}
    unique: list[str] = []
    for original in wanted:
        name = original
        if original in seen:
            number = next_number.get(original, 1)
            while f"{original}_{number}" in taken:
                number += 1
            next_number[original] = number + 1
            name = f"{original}_{number}"
            taken.add(name)
        seen.add(name)
        unique.append(name)
    return unique


def make_names_unique(model: ov.Model) -> int:
    """Rename the top-level ops of ``model`` in place so that friendly names are unique.

    Bodies of If, Loop and TensorIterator are left alone: HETERO places the whole op.

    Returns:
        How many ops were renamed.
    """
    ops = model.get_ordered_ops()
    renamed = 0
    before = [op.get_friendly_name() for op in ops]
    for op, old, new in zip(ops, before, unique_names(before), strict=True):
        if old != new:
            op.set_friendly_name(new)
            renamed += 1
    return renamed
