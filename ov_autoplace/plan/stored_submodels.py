"""Models as bytes in Constants: a text for each, and the weights of all of them, every one once.

OpenVINO writes a model as a text that says where in a file its constants are. Here the texts of all
submodels speak of one file, in which equal constants are one, so that weights that submodels share are stored
once. That file is in memory and mapped by OpenVINO as it maps any model's weights: from there no copy is made
of them. Who stores many schedules of one model gives a file that has its weights already.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

import numpy as np
import openvino as ov
from openvino import opset13 as opset

from ov_autoplace._base.files import temporary_folder
from ov_autoplace.devices.models import openvino_reason, readable_text
from ov_autoplace.devices.names import core_with
from ov_autoplace.errors import OutputError

__all__ = ["WeightsFile", "store"]

# What the text says of a constant. Texts of attributes are escaped, so nothing else looks like it.
_PLACE = re.compile(rb'( shape="[^"]*" offset=")(\d+)(" size=")(\d+)"')
_ALIGNMENT = 64
_CONSTANT = """<?xml version="1.0"?>
<net name="weights" version="11"><layers>
<layer id="0" name="weights" type="Const" version="opset1">
<data element_type="u8" shape="{size}" offset="0" size="{size}"/>
<output><port id="0" precision="U8"><dim>{size}</dim></port></output></layer>
<layer id="1" name="result" type="Result" version="opset1">
<input><port id="0" precision="U8"><dim>{size}</dim></port></input></layer>
</layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/></edges></net>
"""


class WeightsFile:
    """Constants that are in one file, each content once; it grows by those that it lacks.

    Args:
        file: Its descriptor, to be read and written.
        model: The text of a model whose weights it has already, beside which it lies.
    """

    def __init__(self, file: int, model: Path | None = None) -> None:
        self._file, self._model = file, model
        self._end = os.fstat(file).st_size

    @cached_property
    def _found(self) -> dict[bytes, int]:
        """Where each content is."""
        if self._model is None or not self._end:
            return {}
        places = {(int(start), int(size)) for _, start, _, size in _PLACE.findall(self._model.read_bytes())}
        with _mapped(self._file) as content:
            return {_key(content[start : start + size]): start for start, size in places}

    def place_of(self, content: memoryview) -> int:
        """Where some bytes are, which are written unless they are there."""
        key = _key(content)
        if key not in self._found:
            place = position = -(-self._end // _ALIGNMENT) * _ALIGNMENT
            while content:
                written = os.pwrite(self._file, content, position)
                content, position = content[written:], position + written
            self._found[key], self._end = place, position
        return self._found[key]

    def constant(self) -> ov.Node:
        """A Constant whose bytes are those of the file so far; it maps them."""
        with _file("weights.xml") as xml:
            os.pwrite(xml, self._constant_text().encode(), 0)
            read = core_with().read_model(_path(xml), _path(self._file))
        node: ov.Node = read.get_results()[0].input_value(0).get_node()
        return node

    def save(self, model: ov.Model, folder: Path) -> Path:
        """Write a text of a model whose weights are in the file, and a link to it as OpenVINO looks for one.

        Raises:
            OSError, RuntimeError: There is no room.
        """
        path = folder / "model.xml"
        path.write_bytes(_text(model, self, path))
        self._link(path)
        return path

    def save_constant(self, path: Path) -> None:
        """The same of a model that holds nothing but :meth:`constant`."""
        path.write_text(self._constant_text())
        self._link(path)

    def _link(self, path: Path) -> None:
        assert self._model is not None
        link = path.with_suffix(".bin")
        link.unlink(missing_ok=True)
        link.symlink_to(self._model.with_suffix(".bin"))

    def _constant_text(self) -> str:
        if not self._end:  # a Constant has at least one byte
            self._end = os.pwrite(self._file, b"\0", 0)
        return _CONSTANT.format(size=self._end)


def store(models: Sequence[ov.Model], common: WeightsFile | None = None) -> tuple[list[ov.Node], ov.Node]:
    """Constants of bytes from which models can be read.

    Args:
        models: S models, which may share constants.
        common: Where their weights are to be, in place of a file of their own.

    Returns:
        The texts, S, and the weights of all of them; with ``common``, one byte that stands for its
        :meth:`~WeightsFile.constant`.

    Raises:
        OutputError: There is no room left for them.
    """
    try:
        with _file("weights") as file, temporary_folder() as folder:
            weights = common or WeightsFile(file)
            texts = [_text(model, weights, folder / "model.xml") for model in models]
            stored = weights.constant() if common is None else opset.constant(np.zeros(1, np.uint8))
            return [opset.constant(np.frombuffer(text, np.uint8)) for text in texts], stored
    except (OSError, RuntimeError) as cause:
        where = "in memory" if common is None else "beside it"
        raise OutputError(
            f"the model's parts cannot be stored {where}: {openvino_reason(cause)}; make room there"
        ) from cause


def _text(model: ov.Model, common: WeightsFile, path: Path) -> bytes:
    """The text of a model whose constants are in the common file.

    Args:
        model: The model.
        common: The file.
        path: Where the text may be written; OpenVINO insists on a file's name.
    """
    with _file("model.bin") as weights:
        ov.serialize(model, path, _path(weights))
        text = readable_text(path.read_bytes())
        if not text.rstrip().endswith(b"</net>"):
            raise OSError(f"what was written to {path} does not read back; is the disk full?")
        if not os.fstat(weights).st_size:
            if any(int(size) for *_, size in _PLACE.findall(text)):
                raise OSError("weights are missing")
            return text
        with _mapped(weights) as content:

            def moved(found: re.Match[bytes]) -> bytes:
                start, size = int(found[2]), int(found[4])
                if start + size > len(content):
                    raise OSError("weights are missing")
                with content[start : start + size] as part:
                    place = common.place_of(part)
                return b'%s%d%s%d"' % (found[1], place, found[3], size)

            return _PLACE.sub(moved, text)


def _key(content: memoryview) -> bytes:
    return hashlib.blake2b(content, digest_size=32).digest()


@contextmanager
def _mapped(file: int) -> Iterator[memoryview]:
    """The bytes of a file that has some."""
    with mmap.mmap(file, 0, prot=mmap.PROT_READ) as mapped, memoryview(mapped) as content:
        yield content


@contextmanager
def _file(name: str) -> Iterator[int]:
    """A file in memory that is gone when nothing maps it."""
    file = os.memfd_create(f"ov-autoplace-{name}")
    try:
        yield file
    finally:
        os.close(file)


def _path(file: int) -> str:
    return f"/proc/self/fd/{file}"
