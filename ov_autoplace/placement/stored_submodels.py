"""Models as bytes in Constants: a text for each, and the weights of all of them, every one once.

OpenVINO writes a model as a text that says where in a file its constants are. Here the texts of all
submodels speak of one file, in which equal constants are one, so that weights that submodels share are stored
once. That file is in memory and mapped by OpenVINO as it maps any model's weights: from there no copy is made
of them.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import openvino as ov
from openvino import opset13 as opset

from ov_autoplace._base.files import temporary_folder
from ov_autoplace.devices.models import openvino_reason
from ov_autoplace.devices.names import core_with
from ov_autoplace.errors import OutputError

__all__ = ["store"]

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


def store(models: Sequence[ov.Model]) -> tuple[list[ov.Node], ov.Node]:
    """Constants of bytes from which models can be read.

    Args:
        models: S models, which may share constants.

    Returns:
        The texts, S, and the weights of all of them.

    Raises:
        OutputError: There is no memory left for them.
    """
    try:
        with _file("weights") as file, temporary_folder() as folder:
            places = _Places(file)
            texts = [_text(model, places, folder / "model.xml") for model in models]
            return [opset.constant(np.frombuffer(text, np.uint8)) for text in texts], _mapped(file)
    except (OSError, RuntimeError) as cause:
        raise OutputError(
            f"the model's parts cannot be stored in memory: {openvino_reason(cause)}; make room there"
        ) from cause


class _Places:
    """Where each content is in a file that grows."""

    def __init__(self, file: int) -> None:
        self._file, self._end = file, 0
        self._found: dict[bytes, int] = {}

    def of(self, content: memoryview) -> int:
        """The place of some bytes, which are written unless they are there."""
        key = hashlib.blake2b(content, digest_size=32).digest()
        if key not in self._found:
            self._found[key] = self._end
            position = self._end
            while content:
                written = os.pwrite(self._file, content, position)
                content, position = content[written:], position + written
            self._end = -(-position // _ALIGNMENT) * _ALIGNMENT
        return self._found[key]


def _text(model: ov.Model, places: _Places, path: Path) -> bytes:
    """The text of a model whose constants are in the common file.

    Args:
        model: The model.
        places: Of the common file.
        path: Where the text may be written; OpenVINO insists on a file's name.
    """
    with _file("model.bin") as weights:
        ov.serialize(model, path, _path(weights))
        text = path.read_bytes()
        if not text.rstrip().endswith(b"</net>"):
            raise OSError(f"what was written to {path} does not read back; is the disk full?")
        if not os.fstat(weights).st_size:
            if any(int(size) for *_, size in _PLACE.findall(text)):
                raise OSError("weights are missing")
            return text
        with ExitStack() as opened:
            mapped = opened.enter_context(mmap.mmap(weights, 0, prot=mmap.PROT_READ))
            content = opened.enter_context(memoryview(mapped))

            def moved(found: re.Match[bytes]) -> bytes:
                start, size = int(found[2]), int(found[4])
                if start + size > len(content):
                    raise OSError("weights are missing")
                with content[start : start + size] as part:
                    place = places.of(part)
                return b'%s%d%s%d"' % (found[1], place, found[3], size)

            return _PLACE.sub(moved, text)


def _mapped(file: int) -> ov.Node:
    """A Constant whose bytes are those of a file, of at least one byte."""
    if not os.fstat(file).st_size:
        os.pwrite(file, b"\0", 0)
    with _file("weights.xml") as xml:
        os.pwrite(xml, _CONSTANT.format(size=os.fstat(file).st_size).encode(), 0)
        read = core_with().read_model(_path(xml), _path(file))
    constant: ov.Node = read.get_results()[0].input_value(0).get_node()
    return constant


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
