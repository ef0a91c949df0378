"""Writing a set of files into a folder so that a reader, or a kill, sees the old set or the new one."""

from __future__ import annotations

import ctypes
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from ov_autoplace._base.files import staged_folder
from ov_autoplace.errors import OutputError

__all__ = ["write_folder"]

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


def write_folder(folder: str | os.PathLike[str], files: Mapping[str, bytes]) -> None:
    """Put ``files`` into ``folder``, all of them or none.

    They are written into a folder beside it and flushed to the disk; then the two folders change names in one
    step. What else the folder held is linked over first, so it stays, and a program that has one of those
    files open goes on writing to it. What a kill leaves beside is removed by the next call.

    Args:
        folder: Made when it does not exist; its parent must exist.
        files: Content by file name.

    Raises:
        OutputError: It cannot be written, or is the current folder, which would be pulled away from under
            the caller's feet.
    """
    # An unresolved link would be replaced itself, instead of what it leads to.
    folder = Path(folder).resolve()
    aside = folder.with_name(f".{folder.name}.old")
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"cannot write to {folder}: it is a file, not a folder")
    if folder.exists() and Path.cwd().is_relative_to(folder):
        raise OutputError(f"cannot replace {folder} while it is the current folder; give one of its own")
    try:
        if not folder.exists() and aside.exists():
            aside.rename(folder)  # see _take_place
        with staged_folder(folder.parent) as staging:
            stage = staging / folder.name
            if folder.exists():
                shutil.copytree(
                    folder,
                    stage,
                    symlinks=True,
                    copy_function=_link_or_copy,
                    ignore=lambda where, names: set(names) & set(files) if Path(where) == folder else set(),
                )
            else:
                stage.mkdir()
            for name, content in files.items():
                with (stage / name).open("wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
            _sync_folder(stage)
            _take_place(stage, folder, aside)
            _sync_folder(folder.parent)
    except (OSError, shutil.Error) as cause:
        reason = (getattr(cause, "strerror", None) or str(cause)).lower()
        raise OutputError(f"cannot write {folder}: {reason}") from cause


def _take_place(stage: Path, folder: Path, aside: Path) -> None:
    """Give ``stage`` the name ``folder``; what had that name is then called ``stage``, or is gone."""
    if not folder.exists():
        stage.rename(folder)
    elif not _exchange(stage, folder):
        # Without an exchange in one step, a kill between these two leaves the old files under the other name,
        # and the next call gives it back.
        shutil.rmtree(aside, ignore_errors=True)
        folder.rename(aside)
        stage.rename(folder)
        shutil.rmtree(aside, ignore_errors=True)


def _exchange(first: Path, second: Path) -> bool:
    """Exchange two names in one step; ``False`` where the system or the file system cannot."""
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if renameat2 is None:
        return False
    failed = renameat2(_AT_FDCWD, os.fsencode(first), _AT_FDCWD, os.fsencode(second), _RENAME_EXCHANGE)
    return int(failed) == 0


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:  # a file system without links
        shutil.copy2(source, target)


def _sync_folder(folder: Path) -> None:
    """Make the names in a folder as lasting as the files' content."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
