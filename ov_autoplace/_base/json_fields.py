"""Reading JSON: texts, files, and fields with their types checked; what is wrong becomes one sentence.

msgspec was weighed: a reader of target profiles has as many lines with it (77 for 76), because its records
repeat the frozen classes that hold arrays, and lists as long as there are devices are checked by hand all the
same. It takes 8 ms to import (pydantic 21), and names neither a wrong value nor the key of a mapping.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ov_autoplace._base.files import os_reason, possible
from ov_autoplace._base.text import is_unicode, unknown_name
from ov_autoplace.errors import AutoplaceError

__all__ = ["Record", "json_of", "naming", "parse_json", "read_json", "shown"]

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


@dataclass(frozen=True)
class Record:
    """A JSON object whose fields are read with their type checked.

    Attributes:
        fields: The parsed object.
        where: What the object is, for error sentences (``"table.json: group 3"``).
        error: Class of the errors to raise.
    """

    fields: dict[str, Any]
    where: str
    error: type[AutoplaceError]

    @classmethod
    def of(cls, value: Any, where: str, error: type[AutoplaceError]) -> Record:
        """Wrap ``value``, which must be a JSON object."""
        if not isinstance(value, dict):
            raise error(f"{where} must be a JSON object, not {shown(value)}")
        return cls(value, where, error)

    @classmethod
    def load(cls, path: str | Path, error: type[AutoplaceError], what: str) -> Record:
        """The object in a file; the arguments are those of :func:`read_json`."""
        return cls.of(read_json(path, error, what), str(path), error)

    def __contains__(self, key: str) -> bool:
        return self.fields.get(key) is not None

    def require_schema(self, schema: str, version: int) -> None:
        """Refuse an object that does not carry this ``schema`` and ``version``."""
        found = self.fields.get("schema")
        if found != schema:
            raise self.error(f"{self.where} does not hold {schema!r}: its schema is {shown(found)}")
        stated = self.fields.get("version")
        if type(stated) is not int or stated != version:  # true is 1 in Python, and no version
            raise self.error(
                f"{self.where} has version {shown(stated)} of {schema!r}; "
                f"this release reads version {version}"
            )

    def refuse_others(self, known: Sequence[str]) -> None:
        """Refuse an object with a key that is not among ``known``, which people misspell."""
        for key in self.fields:
            if key not in known:
                raise self.error(f"{self.where}: {unknown_name('key', key, known)}")

    def text(self, key: str) -> str:
        """A string."""
        value = self.fields.get(key)
        if not isinstance(value, str):
            raise self._wrong(key, "a string", value)
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of strings."""
        values = self.items(key)
        for value in values:
            if not isinstance(value, str):
                raise self._wrong(key, "a list of strings", value)
        return tuple(values)

    def flag(self, key: str, default: bool) -> bool:
        """A boolean (0 and 1 count as such), or ``default`` where the field is missing."""
        value = self.fields.get(key, default)
        if value not in (0, 1):
            raise self._wrong(key, "true or false", value)
        return bool(value)

    def integer(self, key: str, low: int, high: int) -> int:
        """An integer of ``low .. high``."""
        return self._integer(key, self.fields.get(key), low, high)

    def integers(self, key: str, low: int, high: int) -> list[int]:
        """A list of integers of ``low .. high``."""
        return [self._integer(key, value, low, high) for value in self.items(key)]

    def integer_lists(self, key: str, low: int, high: int) -> list[list[int]]:
        """A list of lists of integers of ``low .. high``."""
        return [
            Record({key: row}, self.where, self.error).integers(key, low, high) for row in self.items(key)
        ]

    def rows(self, key: str, length: int, low: int, high: int) -> list[list[int]]:
        """A list of lists of exactly ``length`` integers of ``low .. high``."""
        rows = self.integer_lists(key, low, high)
        for row in rows:
            if len(row) != length:
                raise self._wrong(key, f"a list of lists of {length}", row)
        return rows

    def number(self, key: str, null: float | None = None) -> float:
        """A finite number that is not negative; ``null`` is what a JSON null means, if anything."""
        return self._number(key, self.fields.get(key), null)

    def numbers(self, key: str, length: int | None = None, null: float | None = None) -> list[float]:
        """A list of numbers as in :meth:`number`, of exactly ``length`` of them."""
        values = self.items(key)
        if length is not None and len(values) != length:
            raise self.error(f"{self.where}: {key!r} must hold {length} numbers, not {len(values)}")
        return [self._number(key, value, null) for value in values]

    def matrix(self, key: str, rows: int, columns: int) -> list[list[float]]:
        """``rows`` lists of ``columns`` numbers each."""
        values = self.items(key)
        if len(values) != rows:
            raise self.error(f"{self.where}: {key!r} must hold {rows} rows, not {len(values)}")
        return [Record({key: row}, self.where, self.error).numbers(key, columns) for row in values]

    def items(self, key: str) -> list[Any]:
        """A list of anything."""
        value = self.fields.get(key)
        if not isinstance(value, (list, tuple)):  # a program may hand over either
            raise self._wrong(key, "a list", value)
        return list(value)

    def record(self, key: str) -> Record:
        """A nested object."""
        return Record.of(self.fields.get(key), f"{self.where}: {key!r}", self.error)

    def records(self, key: str, what: str) -> Iterator[Record]:
        """A list of objects, each called ``what`` with its position in error sentences."""
        for position, value in enumerate(self.items(key)):
            yield Record.of(value, f"{self.where}: {what} {position}", self.error)

    def _integer(self, key: str, value: Any, low: int, high: int) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise self._wrong(key, f"an integer of {low} to {high}", value)
        return value

    def _number(self, key: str, value: Any, null: float | None) -> float:
        if value is None and null is not None:
            return null
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            try:
                number = float(value)
            except OverflowError:  # an integer of hundreds of digits
                number = math.inf
            if math.isfinite(number) and number >= 0:
                return number
        raise self._wrong(
            key, "a finite number of at least 0" + (" or null" if null is not None else ""), value
        )

    def _wrong(self, key: str, expected: str, value: Any) -> AutoplaceError:
        found = "it is missing" if value is None and key not in self.fields else f"not {shown(value)}"
        return self.error(f"{self.where}: {key!r} must be {expected}, {found}")


@contextmanager
def naming(path: str | Path, error: type[AutoplaceError]) -> Iterator[None]:
    """Put ``path`` in front of the errors of class ``error`` that do not name it yet."""
    try:
        yield
    except error as cause:
        if str(cause).startswith(str(path)):
            raise
        raise error(f"{path}: {cause}") from cause


def shown(value: Any) -> str:
    """``value`` for an error sentence, cut so that a hostile file cannot fill the screen."""
    if isinstance(value, (dict, list)):
        return f"a {type(value).__name__} of {len(value)}"
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 64:
        return "an integer of more than 64 bits"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def read_json(path: str | Path, error: type[AutoplaceError], what: str) -> Any:
    """Parse a JSON file.

    Args:
        path: The file.
        error: Class of the error to raise.
        what: What the file should be, for the error's sentence (``"a target profile"``).

    Raises:
        AutoplaceError: Of class ``error``: the file is missing, unreadable, or is not JSON.
    """
    try:
        content = possible(path).read_bytes()
    except OSError as cause:
        raise error(f"cannot read {what} from {path}: {os_reason(cause)}") from cause
    return json_of(content, path, error, what)


def json_of(content: str | bytes, where: str | Path, error: type[AutoplaceError], what: str) -> Any:
    """Parse JSON, of a file or of what another machine said.

    Args:
        content: The text; bytes are UTF-8.
        where: Where it is from, for the error's sentence.
        error: Class of the error to raise.
        what: As :func:`read_json` takes it.

    Raises:
        AutoplaceError: Of class ``error``: it is not JSON.
    """
    try:
        return parse_json(content if isinstance(content, str) else content.decode())
    except (ValueError, RecursionError) as cause:
        raise error(f"{where} is not {what}: it does not parse as JSON ({cause})") from cause


def parse_json(text: str) -> Any:
    """``json.loads`` that refuses texts which nothing can write or pass on.

    Raises:
        ValueError: It is not JSON, or holds the lone half of a surrogate pair.
        RecursionError: It is nested too deeply.
    """
    value = json.loads(text)
    if (_SURROGATE.search(text) or not is_unicode(text)) and not is_unicode(
        json.dumps(value, ensure_ascii=False)
    ):
        raise ValueError("it holds the lone half of a surrogate pair, which is no character")
    return value
