"""What OpenVINO's releases do differently, as far as it matters here: the one place that compares versions.

Each fact was tried on all of :data:`KNOWN`; ``tests/test_openvino_release.py`` tries it on what is installed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import openvino as ov

from ov_autoplace._version import OPENVINO_RELEASES

__all__ = [
    "FLOOR",
    "KNOWN",
    "Facts",
    "HeteroRules",
    "facts",
    "first_with",
    "installed",
    "is_known",
    "is_too_old",
]

KNOWN = OPENVINO_RELEASES
"""The releases that this package was tried with, oldest first."""

FLOOR = KNOWN[0]
"""Those before it write no notes of ops (``user_data:``) into files: annotated models ran on one device."""

_NUMBERS = re.compile(r"\d+\.\d+\.\d+")


class HeteroRules(Enum):
    """How HETERO cuts a placed model, by what it does with submodels that still wait for each other.

    The numbers are those of the C++ core, whose ``partition.hpp`` describes both.

    Attributes:
        REFUSING: It refuses the placement: "Cannot sort subgraphs!".
        ISOLATING: It cuts off one op after the other.
    """

    REFUSING = 0
    ISOLATING = 1


@dataclass(frozen=True, slots=True)
class Facts:
    """What one release does; the defaults are those of the floor.

    Attributes:
        hetero_rules: How HETERO cuts models; see :mod:`ov_autoplace.plan.hetero_rules`.
        imports_mixes: ``Core.import_model`` reads what a model on several devices (HETERO) exported, from
            a blob in ``CACHE_DIR`` too; without it, mixes are compiled anew.
        tells_blobs_apart: The name of a blob in ``CACHE_DIR`` depends on the constants of its model; without
            it, a model gets the blob of another one with other weights.
        refuses_unknown_precisions: ``CPU`` refuses an ``INFERENCE_PRECISION_HINT`` that there is not.
        runs_after_fork: A process that is forked off one with a model runs the model on further threads.
        reports_full_disks: ``openvino.save_model`` raises where it cannot write all of a model.
        reads_infinite_numbers: Infinite attributes of ops, such as the bounds of ``Clamp``, are read from a
            file as they were written, and not as 0.
        adds_extensions_by_path: ``Core.add_extension`` of Python takes a ``pathlib.Path``, not text alone.
    """

    hetero_rules: HeteroRules = HeteroRules.REFUSING
    imports_mixes: bool = False
    tells_blobs_apart: bool = False
    refuses_unknown_precisions: bool = False
    runs_after_fork: bool = False
    reports_full_disks: bool = False
    reads_infinite_numbers: bool = False
    adds_extensions_by_path: bool = False


# What is otherwise from a release on.
_FROM: dict[str, dict[str, Any]] = {
    "2026.0.0": {"tells_blobs_apart": True, "refuses_unknown_precisions": True, "runs_after_fork": True},
    "2026.1.0": {"adds_extensions_by_path": True},
    "2026.2.0": {"reports_full_disks": True, "reads_infinite_numbers": True},
    "2026.3.0": {"hetero_rules": HeteroRules.ISOLATING},
    "2026.4.0": {"imports_mixes": True},
}


def installed() -> str:
    """The release that this process runs with, such as ``2026.4.1``; a version that is none as it stands."""
    numbers = _NUMBERS.match(ov.__version__)
    return numbers[0] if numbers else str(ov.__version__)


def is_known(release: str | None = None) -> bool:
    """Whether ``release`` (``None`` = the one that is installed) is among :data:`KNOWN`."""
    return (installed() if release is None else release) in KNOWN


def is_too_old(release: str | None = None) -> bool:
    """Whether ``release`` (``None`` = the one that is installed) is from before :data:`FLOOR`."""
    return _order(installed() if release is None else release) < _order(FLOOR)


def facts(release: str | None = None) -> Facts:
    """What ``release`` (``None`` = the one that is installed) does.

    A release that is not known does what the one before it does, so a later one what the newest does; so does
    a version that is no release but was built from some branch.
    """
    wanted = _order(installed() if release is None else release)
    found = Facts()
    for first, changes in _FROM.items():
        if _order(first) <= wanted:
            found = replace(found, **changes)
    return found


def first_with(fact: str) -> str:
    """The first release in which a fact of :class:`Facts` is what it is in the newest, for sentences."""
    newest = getattr(facts(KNOWN[-1]), fact)
    return next(release for release in KNOWN if getattr(facts(release), fact) == newest)


def _order(release: str) -> tuple[float, ...]:
    numbers = _NUMBERS.match(release)
    return tuple(map(int, numbers[0].split("."))) if numbers else (float("inf"),)
