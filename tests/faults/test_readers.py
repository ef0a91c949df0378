"""The contract of all readers: what is valid is read, and anything else is one sentence as it is documented.

The readers are those that ``tools/fuzz`` tries far more inputs on. The sentence names the file, and the field
where one of JSON is wrong. What a reader takes besides is listed here, as its documentation has it.
"""

from __future__ import annotations

import copy
import functools
import json
import math
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as opset

import ov_autoplace
from fuzz.mutation import mutate
from fuzz.readers import READERS, Reader
from ov_autoplace.cli.outputs import made_folder
from ov_autoplace.cli.placer_options import read_config
from ov_autoplace.devices.models import check_model_file
from ov_autoplace.errors import AutoplaceError
from random_tables import random_table

LONGEST = 400
"""Characters of a sentence, besides the folder of the test."""


@dataclass(frozen=True)
class Fields:
    """What a reader of JSON takes besides the right value of every field; patterns of dotted names.

    Attributes:
        optional: May be missing or null.
        signed: May be below 0.
        flags: Numbers that count as true and false.
        unread: May be anything.
        chosen: Are names that a user chose: one name less is as good.
        is_strict: No field that nobody knows is left alone, because people write and misspell them.
    """

    optional: Sequence[str] = ()
    signed: Sequence[str] = ()
    flags: Sequence[str] = ()
    unread: Sequence[str] = ()
    chosen: Sequence[str] = ()
    is_strict: bool = False

    def take(self, place: str, value: object) -> bool:
        """Whether a field may be absent (``...``) or hold a value that is wrong elsewhere."""
        taken = [*self.unread]
        taken += self.optional if value is ... or value is None else ()
        taken += self.chosen if value is ... else ()
        taken += self.signed if value == -1 else ()
        taken += self.flags if value is True else ()
        return any(fnmatch(place, pattern) for pattern in taken)


FIELDS = {
    "affinity-file": Fields(chosen=("*",)),
    "cost-table": Fields(
        optional=("devices.*.memory_capacity", "groups.*.op_seconds.*", "wiring"),
        signed=("groups.*.output_shape.*", "groups.*.colocation"),
    ),
    # A source may be told of any field.
    "target": Fields(optional=("devices.*.memory_bytes",), chosen=("devices.*.sources.unknown",)),
    "transfers": Fields(chosen=("settings.*.*",)),
    "dnn-partitioning": Fields(
        optional=("nodes.*.name", "nodes.*.supportedOnFpga"),
        signed=("nodes.*.id", "edges.*.sourceId", "edges.*.destId"),
        flags=("nodes.*.supportedOnFpga",),
        unread=("maxCPUs",),
    ),
    "plan": Fields(chosen=("lanes.*.properties.*", "forms.*")),
    "pool-plan": Fields(
        optional=("base.width", "members.*.width"),
        chosen=("base.properties.*", "members.*.properties.*", "members.*.device_of.*"),
    ),
    "joint-plan": Fields(
        optional=("in_turn", "parts.*.plan.width"),
        flags=("in_turn",),
        chosen=("parts.*.properties.*", "parts.*.plan.properties.*"),
    ),
    "application": Fields(
        optional=(
            *("models.*.devices", "models.*.shapes", "models.*.properties", "chains.*.times"),
            *("load", "load.*.arrivals", "load.*.deadline_ms", "load.*.percentile"),
        ),
        unread=("models.*.properties.*",),
        chosen=("models.*.shapes.*", "models.*.properties.*"),
        is_strict=True,
    ),
    "measurements": Fields(optional=("*.temperature", "*.predicted_ms", "*.relative", "*.best")),
}
"""Readers that look at every field."""

WRONG_VALUES: tuple[Any, ...] = (None, True, "x", 7, -1, math.nan, math.inf, 10**400, [], {}, [[]])

BYTES = {
    "nothing": b"",
    "a zero": b"\0",
    "random bytes": np.random.default_rng(5).bytes(500),
    "half a bracket": b"{",
    "a number": b"3\n",
    "a text": b'"net"\n',
    "a list": b"[]\n",
    "no schema": b'{"a": {}}\n',
    "another schema": b'{"schema": "somebody/else", "version": 1}\n',
    "a number of 5000 digits": b'{"version": ' + b"9" * 5000 + b"}\n",
    "deep lists": b"[" * 100_000 + b"\n",
    "deep objects": b'{"a":' * 100_000 + b"\n",
    "half a pair of surrogates": b'{"schema": "\\ud800", "x": "CPU"}\n',
    "an archive": b"PK\x03\x04" * 50,
    "an empty archive": b"PK\x05\x06" + bytes(18),
    "an array": b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }".ljust(128)
    + bytes(8),
}
"""What no reader takes, with the exceptions below."""

TAKEN = {
    "log": {
        *("no schema", "another schema"),
        *(name for name, data in BYTES.items() if b"\n" not in data),
    },
    "configuration-file": {"no schema", "another schema"},
}
"""A log's lines are any objects, and the last one may be torn; a configuration may hold any names."""


def _parameters(readers: Sequence[Reader]) -> list[object]:
    return [pytest.param(reader, id=reader.name, marks=_marks(reader)) for reader in readers]


def _marks(reader: Reader) -> list[pytest.MarkDecorator]:
    if reader.name == "report":
        return [pytest.mark.bokeh]
    return [pytest.mark.torch] if reader.needs_torch else []


FILES = [reader for reader in READERS if reader.opens]
every_file = pytest.mark.parametrize("reader", _parameters(FILES))
every_field = pytest.mark.parametrize("reader", _parameters([r for r in READERS if r.name in FIELDS]))


def refusal(reader: Reader, folder: Path, data: bytes | None = None) -> str | None:
    """What a reader says of an input, or of what lies under its file's name; ``None`` where it takes it."""
    path = folder / reader.file
    try:
        if reader.opens is None:
            reader.read(data or b"", folder)
        else:
            if data is not None:
                path.write_bytes(data)
            reader.opens(path)
    except reader.errors as error:
        sentence = str(error)
    else:
        return None
    assert sentence
    assert "\n" not in sentence
    if reader.opens:  # what was typed is quoted whole
        assert len(sentence.replace(str(folder), "")) < LONGEST, sentence
        assert reader.file in sentence or folder.name in sentence, sentence
    return sentence


@pytest.mark.parametrize("reader", _parameters(READERS))
def test_what_is_valid_is_read_and_what_is_changed_at_random_is_read_or_refused(
    reader: Reader, tmp_path: Path
) -> None:
    seeds = reader.seeds()
    for seed in seeds:
        assert reader.read(seed, tmp_path) is not False
    for number in range(max(4, min(60, round(60 * reader.share)))):
        refusal(reader, tmp_path, mutate(seeds[number % len(seeds)], 16384, number, tuple(seeds)))


@every_file
def test_what_is_not_there_and_a_folder_are_refused(reader: Reader, tmp_path: Path) -> None:
    assert bool(refusal(reader, tmp_path)) == bool(reader.errors)
    (tmp_path / reader.file).mkdir()
    assert bool(refusal(reader, tmp_path)) == bool(reader.errors)


@every_file
def test_what_is_something_else_is_refused(reader: Reader, tmp_path: Path) -> None:
    for name, data in BYTES.items():
        said = refusal(reader, tmp_path, data)
        assert bool(said) == (bool(reader.errors) and name not in TAKEN.get(reader.name, ())), (name, said)


@every_file
def test_a_file_that_breaks_off_is_refused_wherever_it_does(reader: Reader, tmp_path: Path) -> None:
    for seed in reader.seeds():
        whole = seed.rstrip()
        for length in {int(at) for at in np.linspace(0, len(whole) - 1, 40)}:
            said = refusal(reader, tmp_path, whole[:length])
            assert said or reader.name == "log" or not reader.errors, length


@every_file
def test_another_encoding_than_utf_8_is_refused(reader: Reader, tmp_path: Path) -> None:
    for seed in filter(None, reader.seeds()):
        for data in (seed.decode("latin-1").encode("utf-16"), b"\xef\xbb\xbf" + seed, b"\xff" + seed):
            assert bool(refusal(reader, tmp_path, data)) == bool(reader.errors), data[:9]


@every_field
def test_a_field_that_is_missing_or_of_another_kind_is_refused_and_named(
    reader: Reader, tmp_path: Path
) -> None:
    fields = FIELDS[reader.name]
    for seed in reader.seeds():
        document = json.loads(seed)
        for *outer, key in _places(document):
            place = ".".join(map(str, (*outer, key)))
            named = [step for step in (*outer, key) if isinstance(step, str)]
            for value in (..., *WRONG_VALUES):
                changed = copy.deepcopy(document)
                holder = functools.reduce(operator.getitem, outer, changed)
                if fields.take(place, value) or _as_good(value, holder, key):
                    continue
                if value is ...:
                    del holder[key]
                else:
                    holder[key] = value
                said = refusal(reader, tmp_path, json.dumps(changed).encode())
                what = f"{place} is {'missing' if value is ... else repr(value)[:20]}: {said}"
                assert said, what
                assert not named or named[-1].removesuffix("s") in said, what


@every_field
def test_a_field_that_nobody_knows_is_left_alone_where_no_person_writes_it(
    reader: Reader, tmp_path: Path
) -> None:
    """So may a later release say more in a file of the same version."""
    for seed in reader.seeds():
        document = json.loads(seed)
        for place in [(), *_places(document)]:
            changed = copy.deepcopy(document)
            holder = functools.reduce(operator.getitem, place, changed)
            name = ".".join(map(str, (*place, "unknown")))
            if isinstance(holder, dict) and not any(fnmatch(name, p) for p in FIELDS[reader.name].chosen):
                holder["unknown"] = ["x"]
                said = refusal(reader, tmp_path, json.dumps(changed).encode())
                assert bool(said) is FIELDS[reader.name].is_strict, name


def _as_good(value: Any, holder: Any, key: Any) -> bool:
    """Whether a value is of the kind that the field has, or an item of a list less is another valid list."""
    if value is ...:
        return isinstance(holder, list)
    if key in ("schema", "version"):
        return False
    if type(value) is int and 0 <= value < 10:
        return holder[key] is None or type(holder[key]) in (int, float)
    is_strange = type(value) in (int, float)  # NaN, an infinity, below 0, or too large
    return type(value) is type(holder[key]) and not is_strange


def _places(value: Any, *outer: str | int) -> Iterator[tuple[str | int, ...]]:
    """The way to every field of a document, and to the first item of every list."""
    if isinstance(value, (dict, list)):
        for key, item in value.items() if isinstance(value, dict) else list(enumerate(value))[:1]:
            yield (*outer, key)
            yield from _places(item, *outer, key)


ONCE = (
    ("affinity-file", {"x": "\ud800", "kernel": "CPU", "product": "CPU", "relu": "CPU", "answer": "CPU"}),
    ("affinity-file", {"x": "C\0PU", "kernel": "CPU", "product": "CPU", "relu": "CPU", "answer": "CPU"}),
    ("options", {"time_budget_ms": 10**400}),
    ("shapes", {"y": [2**63]}),
    ("command-line", {"config": "\ud800"}),
    ("command-line", {"pins": ["a*=CPU"], "config": "\0"}),
)


@pytest.mark.parametrize(("name", "value"), ONCE)
def test_what_was_a_fault_once_is_refused_in_a_sentence(name: str, value: object, tmp_path: Path) -> None:
    reader = next(reader for reader in READERS if reader.name == name)
    with pytest.raises(reader.errors):
        reader.read(json.dumps(value).encode(), tmp_path)


@pytest.mark.parametrize("text", ["XCPU=NONE", "XCPU=CPU,NO_SUCH_PROPERTY=1", "X\x1bCPU=CPU"])
def test_extra_devices_that_cannot_be_are_refused_in_a_sentence(text: str, tmp_path: Path) -> None:
    reader = next(reader for reader in READERS if reader.name == "extra-devices")
    with pytest.raises(reader.errors):
        reader.read(text.encode(), tmp_path)


@pytest.mark.parametrize("name", ["a\0b", "a\ud800b"])
def test_a_name_that_no_file_can_have_is_refused_with_a_sentence(name: str) -> None:
    core, table = ov.Core(), random_table(1, 5, 2)
    x = opset.parameter([8], np.float32)
    model = ov.Model([opset.relu(x)], [x])
    config = {"AUTOPLACE_MODE": "ZERO_SHOT"}
    for use in (
        lambda: ov_autoplace.load_table(name),
        lambda: ov_autoplace.save_table(table, name),
        lambda: ov_autoplace.load_target(name),
        lambda: ov_autoplace.load_dnn_partitioning(name),
        lambda: ov_autoplace.place(model, "CPU", core=core, mode="ZERO_SHOT", target=name),
        lambda: core.compile_model(model, "AUTOPLACE:CPU", {**config, "CACHE_DIR": name}),
        lambda: read_config(name),
        lambda: check_model_file(Path(name)),
        lambda: made_folder(Path(name)).__enter__(),
    ):
        with pytest.raises(AutoplaceError):
            use()
