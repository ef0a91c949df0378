"""By which of the sets of rules that are known HETERO cuts models in this process.

Of a release of OpenVINO that the table of releases does not know, HETERO itself is asked, once on each
machine: it compiles small models, the canaries, and how many submodels it makes of each tells the rules
apart, also from rules that nobody knows. The answer is kept in the user's cache folder.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import openvino as ov
from openvino import opset13 as opset

from ov_autoplace._base import releases
from ov_autoplace._base.files import make_folder, write_text_atomically
from ov_autoplace._base.json_fields import Record
from ov_autoplace._base.releases import HeteroRules
from ov_autoplace._base.user_cache import user_cache_folder
from ov_autoplace.devices.names import core_with, plugin_library
from ov_autoplace.errors import AutoplaceError, TargetError

__all__ = [
    "CANARIES",
    "COUNTS",
    "StoredCounts",
    "are_rules_known",
    "canary",
    "canary_counts",
    "hetero_rules",
    "stored_counts",
]

_log = logging.getLogger("ov_autoplace")
_SCHEMA, _VERSION = "ov-autoplace/hetero-counts", 1
COUNTS = "hetero-*.json"
"""Where the answers are in the user's cache folder."""

CANARIES = {
    "xB 00B 10A cB 1B 4B 43A 5B 65A 77B 87B a9B": (4, 7),
    "xB 0A 0B 1B cB 24B 34B 56B 5A": (0, 5),
    "xA 0A xA 1B 11A 44B 34A 6B 54A 78A cB 96A 9aA": (7, 8),
    "xA xB 10B cB 11A 13B 03A 45B 07B": (4, 5),
    "xB 00A 01B cA 23B 23A 23A 52B 7A 46B 87B 9A 7B": (9, 11),
    "xA xA 01B 10B 21B 13A 15A 23B 6B 84B 9A 6B 88A 9B ddA": (0, 11),
    "xB 00B xA 22B cA 2B cB 5A 15B 3A 74B 57A a6B 56B 89B 8B": (0, 9),
    "xA 00B 11A 20B 32A 34A 51B 2B 63B 85A 76B 69B": (8, 9),
}
"""Models that tell rules apart, and how many submodels each of :class:`HeteroRules` makes; 0 = it refuses.

An op is the numbers of those that it reads, in base 36, or ``x`` for a Parameter and ``c`` for a Constant,
and its device. What nobody reads is an output. They were chosen among random ones such that most changes of
either set of rules change a count.
"""

_DEVICES = {"A": "CPU", "B": "CANARYCPU"}  # the name of a plugin tells what it is for


def hetero_rules(*, is_mix: bool = True) -> HeteroRules:
    """The rules by which submodels are predicted: HETERO's where they are known, else the newest.

    Args:
        is_mix: There is more than one device; else nothing is cut, and HETERO is not asked.
    """
    return (_rules_here() if is_mix else None) or list(HeteroRules)[-1]


def are_rules_known() -> bool:
    """Whether HETERO cuts models as it is predicted, as far as anybody knows."""
    return _rules_here() is not None


def _rules_here() -> HeteroRules | None:
    if releases.is_known():
        return releases.facts().hetero_rules
    return _rules_of(_counts_here())


def _rules_of(counts: tuple[int, ...]) -> HeteroRules | None:
    expected = zip(HeteroRules, zip(*CANARIES.values(), strict=True), strict=True)
    return next((rules for rules, those in expected if those == counts), None)


@dataclass(frozen=True)
class StoredCounts:
    """What was counted with one OpenVINO.

    Attributes:
        openvino: Its version.
        canaries: The models.
        counts: How many submodels HETERO made of each; 0 = it refused.
    """

    openvino: str
    canaries: tuple[str, ...]
    counts: tuple[int, ...]

    @classmethod
    def load(cls, path: Path) -> StoredCounts:
        """Read a file.

        Raises:
            TargetError: It is damaged, or was written by another version.
        """
        record = Record.load(path, TargetError, "counts of submodels")
        record.require_schema(_SCHEMA, _VERSION)
        canaries, counts = record.texts("canaries"), record.integers("counts", 0, 2**31 - 1)
        if len(counts) != len(canaries):
            raise TargetError(f"{path} has {len(counts)} counts of {len(canaries)} models")
        return cls(record.text("openvino"), canaries, tuple(counts))

    def save(self, path: Path) -> None:
        """Write a file, and its folder where that is missing.

        Raises:
            OutputError: That is not possible.
        """
        document = {
            "schema": _SCHEMA,
            "version": _VERSION,
            "openvino": self.openvino,
            "canaries": self.canaries,
            "counts": self.counts,
        }
        make_folder(path.parent)
        write_text_atomically(path, json.dumps(document) + "\n")

    @property
    def rules(self) -> HeteroRules | None:
        """Those that make as many; ``None`` where no known ones do."""
        return _rules_of(self.counts) if self.canaries == tuple(CANARIES) else None

    def __str__(self) -> str:
        by = "rules that are not known" if self.rules is None else f"the rules {self.rules.name}"
        return f"HETERO cuts models by {by}"


def stored_counts() -> Iterator[Path]:
    """Files of all answers."""
    folder = user_cache_folder()
    if folder is not None and folder.is_dir():
        yield from sorted(folder.glob(COUNTS))


@cache
def _counts_here() -> tuple[int, ...]:
    """What the OpenVINO in this process makes of the canaries, from the cache folder where it is there."""
    version, folder = str(ov.get_version()), user_cache_folder()
    key = hashlib.sha256(version.encode()).hexdigest()[:32]
    path = None if folder is None else folder / COUNTS.replace("*", key)
    if path is not None and path.exists():
        try:
            stored = StoredCounts.load(path)
        except TargetError as cause:
            _log.debug("%s is not used and will be replaced: %s", path, cause)
        else:
            if stored.openvino == version and stored.canaries == tuple(CANARIES):
                return stored.counts
    found = StoredCounts(version, tuple(CANARIES), canary_counts())
    _log.info("OpenVINO %s was not known when this was made; %s", version, found)
    # Where everything failed, it may have been for want of memory or of files.
    if path is not None and any(found.counts):
        try:
            found.save(path)
        except AutoplaceError as cause:
            _log.debug("what HETERO makes of small models is not kept: %s", cause)
    return found.counts


def canary_counts() -> tuple[int, ...]:
    """How many submodels HETERO makes of each of :data:`CANARIES` now; 0 where it refuses, or fails."""
    first, second = _DEVICES.values()
    core = core_with(((second, str(plugin_library(core_with(), first))),), for_trials=True)
    for device in _DEVICES.values():
        # Without its snippets, which take most of the time to compile, and crash on some graphs.
        with suppress(RuntimeError):
            core.set_property(device, {"SNIPPETS_MODE": "DISABLE"})
    return tuple(_count(core, canary(text)) for text in CANARIES)


def _count(core: ov.Core, model: ov.Model) -> int:
    try:
        compiled = core.compile_model(model, f"HETERO:{','.join(_DEVICES.values())}")
        return int(compiled.get_property("HETERO_NUMBER_OF_SUBMODELS"))
    except RuntimeError:
        return 0


def canary(text: str) -> ov.Model:
    """One of :data:`CANARIES`, with the affinities that HETERO reads."""
    made: list[ov.Node] = []
    for number, op in enumerate(text.split()):
        reads, device = op[:-1], op[-1]
        if reads == "x":
            node = opset.parameter([1])
        elif reads == "c":
            node = opset.constant([1.0], ov.Type.f32)
        else:
            sources = [made[int(digit, 36)] for digit in reads]
            node = opset.relu(*sources) if len(sources) == 1 else opset.add(*sources)
        node.set_friendly_name(f"op{number}")
        node.get_rt_info()["affinity"] = _DEVICES[device]
        made.append(node)
    results: list[ov.Node] = []
    for node in made:
        if not node.output(0).get_target_inputs():
            results.append(opset.result(node, name=f"result{len(results)}"))
            results[-1].get_rt_info()["affinity"] = _DEVICES["A"]
    return ov.Model(results, [node for node in made if node.get_type_name() == "Parameter"])
