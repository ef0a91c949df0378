"""The program of the child process: it compiles and times models, and does what its parent asks for.

It is run as a file by an interpreter without site-packages (``python -I -S``) and loads the C++ core alone,
neither NumPy nor OpenVINO's Python package, so that it is there within some tens of milliseconds.

A message is the lengths of its two parts (``HEADER``), a JSON object, and the bytes of some doubles.
"""

from __future__ import annotations

import _thread
import importlib.machinery
import importlib.util
import json
import mmap
import os
import resource
import select
import signal
import struct
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # the module typing takes as long to load as the rest of this file
    from collections.abc import Callable, Sequence
    from typing import Any

    Answer = tuple[dict[str, Any], bytes]

HEADER = struct.Struct("<QQ")
BOARD_BYTES = 16

_NODE_FIELDS = (
    "name", "subgraph", "type", "exec_type", "status", "original_names", "consumers", "layout", "precision",
    "seconds",
)  # fmt: skip

_OUTCOME_FIELDS = ("rates", "models", "spans", "seconds", "cpu_seconds")


class Worker:
    """Answers requests one after the other.

    Args:
        core: The module ``ov_autoplace._core``.
        link: File descriptor of a stream socket to the parent.
        board: Two numbers in memory that the parent sees: the candidate of a race that runs, and how many
            requests were begun.
    """

    def __init__(self, core: Any, link: int, board: memoryview) -> None:
        self.core = core
        self.link = link
        self.board = board
        self.profiler: Any = None
        self.executables: dict[int, Any] = {}

    def serve(self) -> None:
        """Until the parent closes the link."""
        self.send({})  # the core could be loaded
        while (request := self.receive()) is not None:
            self.board[1] += 1
            call = request.pop("call")
            for number in request.pop("drop", ()):
                self.executables.pop(number, None)
            try:
                answer, payload = getattr(self, "do_" + call)(**request)
            except Exception as error:
                answer, payload = {"error": str(error), "kind": type(error).__name__}, b""
            self.send(answer, payload)

    def do_create(
        self, libraries: list[str], plugins: list[list[str]], device_properties: dict[str, dict[str, str]]
    ) -> Answer:
        """Make the profiler."""
        pairs = [tuple(plugin) for plugin in plugins]
        self.profiler = self.core.Profiler(libraries, pairs, device_properties)
        return {}, b""

    def do_compile(self, number: int, **recipe: Any) -> Answer:
        """Compile a model and keep it under its number."""
        executable = self.executables[number] = self.profiler.compile(**recipe)
        return {
            "subgraphs": executable.subgraphs,
            "compile_seconds": executable.compile_seconds,
            "execution_devices": executable.execution_devices,
            "optimal_requests": executable.optimal_requests,
        }, b""

    def do_run(self, number: int, **how: Any) -> Answer:
        """Run a model."""
        return {}, self.executables[number].run_bytes(**how)

    def do_save_outputs(self, number: int, path: str, anew: bool) -> Answer:
        """Keep what a model computes."""
        self.executables[number].save_outputs(path, anew)
        return {}, b""

    def do_resident_bytes(self) -> Answer:
        """Tell how much memory this process holds."""
        return {"bytes": self.profiler.resident_bytes()}, b""

    def do_save_op_by_op(self, **how: Any) -> Answer:
        """Run a model op by op."""
        return {"differences": self.profiler.save_op_by_op(**how)}, b""

    def do_node_times(self, number: int) -> Answer:
        """Tell what the nodes of a model took."""
        nodes = self.executables[number].node_times()
        return {"nodes": [[getattr(node, field) for field in _NODE_FIELDS] for node in nodes]}, b""

    def do_lane_profile(self, number: int) -> Answer:
        """Tell when the submodels of a model on lanes ran."""
        return {"profile": self.executables[number].lane_profile()}, b""

    def do_race(self, numbers: list[int], **options: Any) -> Answer:
        """Race models."""
        return self._raced(self.profiler.race, [self.executables[number] for number in numbers], options)

    def do_race_loads(self, loads: list[list[Any]], **options: Any) -> Answer:
        """Race loads of many requests."""
        made = [
            ([self.executables[number] for number in numbers], requests, asynchronous)
            for numbers, requests, asynchronous in loads
        ]
        return self._raced(self.core.race_loads, made, options)

    def do_run_workload(self, models: list[list[int]], duration: float, **how: Any) -> Answer:
        """Run several models at once."""
        copies = [[self.executables[number] for number in numbers] for numbers in models]
        outcome = self.core.run_workload(copies, seconds=duration, **how)
        parts = outcome.latency_bytes
        answer = {name: getattr(outcome, name) for name in _OUTCOME_FIELDS}
        return {**answer, "sizes": [len(part) for part in parts]}, b"".join(parts)

    def _raced(self, race: Callable[..., Any], candidates: list[Any], options: dict[str, Any]) -> Answer:
        def progress(rounds: int, running: int, seconds: float) -> None:
            self.send({"progress": [rounds, running, seconds]})

        result = race(candidates, progress=progress, current=self.board[:1], **options)
        parts = [entry.sample_bytes for entry in result.entries]
        entries = [[len(part), entry.dropped] for part, entry in zip(parts, result.entries, strict=True)]
        answer = {name: getattr(result, name) for name in ("best", "rounds", "seconds", "stopped")}
        return {**answer, "entries": entries}, b"".join(parts)

    def send(self, answer: dict[str, Any], payload: bytes = b"") -> None:
        """Write one message."""
        text = json.dumps(answer).encode()
        message = memoryview(HEADER.pack(len(text), len(payload)) + text + payload)
        while message:
            message = message[os.write(self.link, message) :]

    def receive(self) -> Any:
        """Read one message, of which nothing but the JSON object is used; ``None`` at the end."""
        header = self._read(HEADER.size)
        if header is None:
            return None
        text = self._read(HEADER.unpack(header)[0])
        return None if text is None else json.loads(text)

    def _read(self, size: int) -> bytes | None:
        parts = []
        while size:
            try:
                part = os.read(self.link, min(size, 1 << 20))
            except ConnectionResetError:  # the parent went without reading the last answer
                return None
            if not part:
                return None
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


def load_core(path: str) -> Any:
    """The module ``ov_autoplace._core`` from its file, without the package around it."""
    loader = importlib.machinery.ExtensionFileLoader("ov_autoplace._core", path)
    spec = importlib.machinery.ModuleSpec(loader.name, loader, origin=path)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def _die_with(link: int) -> None:
    """Kill this process when the parent is gone, whatever the other threads do."""
    hang_up = select.poll()
    hang_up.register(link, select.POLLRDHUP)
    hang_up.poll()
    os.kill(os.getpid(), signal.SIGKILL)


def _be_expendable() -> None:
    """When memory runs out, let the kernel take this process and not the user's; leave no core dump."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")
    except OSError:
        pass  # no such file system here


def main(arguments: Sequence[str], worker: Callable[[Any, int, memoryview], Worker] = Worker) -> None:
    """Run until the parent is gone.

    Args:
        arguments: File of the core; descriptors of the link and the board; the parent's process id, or 0
            where this process was started by a thread of it that may end first.
        worker: The class that answers.
    """
    library = arguments[0]
    link, board, parent = map(int, arguments[1:])
    os.dup2(2, 1)  # what plugins print belongs to no command's result
    _be_expendable()
    _thread.start_new_thread(_die_with, (link,))
    core = load_core(library)
    if parent:
        core.die_with_parent()
        if os.getppid() != parent:
            return
    memory = memoryview(mmap.mmap(board, BOARD_BYTES)).cast("q")
    worker(core, link, memory).serve()


if __name__ == "__main__":
    main(sys.argv[1:])
