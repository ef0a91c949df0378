"""What is made of an object once, and kept as long as the object."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

__all__ = ["kept"]

_Owner = TypeVar("_Owner")
_Rest = ParamSpec("_Rest")
_Made = TypeVar("_Made")


def kept(make: Callable[Concatenate[_Owner, _Rest], _Made]) -> Callable[Concatenate[_Owner, _Rest], _Made]:
    """Have a function make something of an object, and of what else it is given, once.

    Args:
        make: Its first argument is what owns the result: equal to itself alone, and never changed. What it
            returns must not refer to the owner, which would live as long as the process.
    """
    known: WeakKeyDictionary[_Owner, dict[Any, _Made]] = WeakKeyDictionary()

    @wraps(make)
    def get(owner: _Owner, /, *rest: _Rest.args, **named: _Rest.kwargs) -> _Made:
        of_owner = known.setdefault(owner, {})
        key = (rest, tuple(sorted(named.items())))
        if key not in of_owner:
            of_owner[key] = make(owner, *rest, **named)
        return of_owner[key]

    return get
