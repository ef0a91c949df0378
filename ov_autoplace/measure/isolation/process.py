"""One child process that measures: started, talked to, told apart when it dies or hangs, and stopped."""

from __future__ import annotations

import json
import mmap
import os
import re
import select
import signal
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ov_autoplace.measure.isolation.worker import BOARD_BYTES, HEADER

__all__ = ["NoProcessError", "ProcessEndedError", "WorkerProcess", "is_python"]

WORKER = Path(__file__).with_name("worker.py")

# Waiting is counted in slices, of which each counts once however long it lasted: a machine that slept, or was
# stopped together with its processes, has not hung.
_SLICE_SECONDS = 0.5
_START_SECONDS = 120.0
_END_SECONDS = 10.0


class NoProcessError(Exception):
    """No child process can be started here."""


class ProcessEndedError(Exception):
    """The child process ended before it had answered; the text says how, behind "the process".

    Attributes:
        was_idle: It had not begun with what it was asked for last.
    """

    def __init__(self, how: str, was_idle: bool = False) -> None:
        super().__init__(how)
        self.was_idle = was_idle


class WorkerProcess:
    """A child process that runs ``worker.py``, in a session of its own, without stdin.

    It ends when this object is closed or collected, and when this process ends in any way.

    Raises:
        NoProcessError: It cannot be started.
    """

    def __init__(self) -> None:
        from ov_autoplace import _core

        if not is_python(sys.executable):
            raise NoProcessError(f"{sys.executable!r} is not a Python interpreter")
        link, theirs = socket.socketpair()
        with theirs:
            board = os.memfd_create("ov-autoplace")
            try:
                os.ftruncate(board, BOARD_BYTES)
                self._board = memoryview(mmap.mmap(board, BOARD_BYTES)).cast("q")
                # The kernel ends the child with the thread that started it, which is wanted of one only.
                is_main = threading.current_thread() is threading.main_thread()
                descriptors = (theirs.fileno(), board)
                arguments = [_core.__file__, *descriptors, os.getpid() if is_main else 0]
                self._process = subprocess.Popen(
                    [sys.executable, "-I", "-S", str(WORKER), *map(str, arguments)],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    pass_fds=descriptors,
                    start_new_session=True,
                )
            except OSError as cause:
                link.close()
                raise NoProcessError(str(cause)) from cause
            finally:
                os.close(board)
        link.setblocking(False)
        self._link = link
        self._finalizer = weakref.finalize(self, _end, self._process, link, os.getpid())
        self._poll = select.poll()
        self._greeted = False
        self._requests = 0

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def candidate(self) -> int:
        """Index of the candidate of the race that runs or ran last; -1 before the first one."""
        return int(self._board[0])

    @candidate.setter
    def candidate(self, value: int) -> None:
        self._board[0] = value

    def is_alive(self) -> bool:
        """Whether it has not ended."""
        return self._finalizer.alive and self._process.poll() is None

    def check(self) -> None:
        """Wait until it answers for the first time.

        Raises:
            ProcessEndedError: It does not.
        """
        if not self._greeted:
            self._receive(_START_SECONDS)
            self._greeted = True

    def send(self, message: Mapping[str, Any], seconds: float) -> None:
        """Send a request.

        Raises:
            ProcessEndedError: It is gone, or takes nothing for so long.
        """
        self._requests += 1
        text = json.dumps(message).encode()
        data = memoryview(HEADER.pack(len(text), 0) + text)
        while data:
            self._wait(select.POLLOUT, seconds)
            try:
                data = data[self._link.send(data) :]
            except BlockingIOError:
                continue
            except OSError:
                raise self._ended() from None

    def answer(
        self, seconds: float, progress: Callable[..., None] | None = None
    ) -> tuple[dict[str, Any], bytes]:
        """Wait for the answer to the oldest request.

        Args:
            seconds: How long it may be silent before it counts as hung.
            progress: Called with what it tells in between.

        Returns:
            The answer and the bytes that came with it.

        Raises:
            ProcessEndedError: It died or hung; it is gone then.
        """
        self.check()
        while True:
            answer, payload = self._receive(seconds)
            if "progress" not in answer:
                return answer, payload
            if progress is not None:
                progress(*answer["progress"])

    def close(self) -> None:
        """End it now."""
        self._finalizer()

    def _receive(self, seconds: float) -> tuple[dict[str, Any], bytes]:
        text, payload = HEADER.unpack(self._read(HEADER.size, seconds))
        answer: dict[str, Any] = json.loads(self._read(text, seconds))
        return answer, self._read(payload, seconds)

    def _read(self, size: int, seconds: float) -> bytes:
        data = bytearray()
        while len(data) < size:
            self._wait(select.POLLIN, seconds)
            try:
                part = self._link.recv(min(size - len(data), 1 << 20))
            except BlockingIOError:
                continue
            except OSError:
                part = b""
            if not part:
                raise self._ended()
            data += part
        return bytes(data)

    def _wait(self, event: int, seconds: float) -> None:
        if self._link.fileno() < 0:
            raise ProcessEndedError("was stopped")
        self._poll.register(self._link, event)
        waited = 0.0
        while not self._poll.poll(1e3 * _SLICE_SECONDS):
            waited += _SLICE_SECONDS
            if waited >= seconds:
                self.close()
                raise ProcessEndedError(f"hung: it was stopped after {waited:.0f} s without an answer")

    def _ended(self) -> ProcessEndedError:
        """How it ended, once it has closed its end of the link."""
        try:
            code = self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            code = None
        self.close()
        return ProcessEndedError(_how(code), was_idle=self._board[1] < self._requests)


def _how(code: int | None) -> str:
    """What a return code tells, as the end of a sentence."""
    if code is None:
        return "closed its link"
    if code == -signal.SIGKILL:
        return "was killed by SIGKILL, as the kernel does when memory runs out"
    if code < 0:
        try:
            return f"died of {signal.Signals(-code).name}"
        except ValueError:
            return f"died of signal {-code}"
    return f"left with exit code {code}"


def _end(process: subprocess.Popen[bytes], link: socket.socket, owner: int) -> None:
    link.close()
    if os.getpid() != owner:
        return  # a fork of the process that it belongs to
    process.kill()
    with suppress(subprocess.TimeoutExpired):
        process.wait(_END_SECONDS)


def is_python(executable: str | None) -> bool:
    """Whether a file is an interpreter by its name: of an application that embeds Python it is the latter."""
    if not executable or getattr(sys, "frozen", False):
        return False
    return re.match(r"python[\d.]*[a-z]?$", Path(executable).name) is not None
