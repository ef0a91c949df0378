"""What is made of an object once."""

from __future__ import annotations

import gc
import weakref

from ov_autoplace._base.kept import kept


class Thing:
    """Something with an identity."""


def test_it_is_made_once_for_each_argument_and_goes_with_its_owner() -> None:
    asked = []

    @kept
    def made(owner: Thing, size: int) -> Thing:
        asked.append(size)
        return Thing()

    owner = Thing()
    first = weakref.ref(made(owner, 1))
    assert made(owner, 1) is first()
    assert made(owner, 2) is not first()
    assert made(Thing(), 1) is not first()
    assert asked == [1, 2, 1]
    del owner
    gc.collect()
    assert first() is None
