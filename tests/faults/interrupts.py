"""Presses Ctrl-C at random moments in every command and looks at what is left.

For many of them: ``python tests/faults/interrupts.py --count 200 MODEL.xml``. Exit status 130 is also what a
shell shows of a process that SIGINT ended, which is how Python ends before the program is loaded.
"""

from __future__ import annotations

import argparse
import os
import pty
import random
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ENTRY = "import sys; from ov_autoplace_command import main; sys.exit(main())"
MARK = "OV_AUTOPLACE_INTERRUPTED"
_PYTHON_STARTS = b"Fatal Python error: init_"
HIDE, SHOW = b"\x1b[?25l", b"\x1b[?25h"
WAIT = 60.0


def commands(model: Path, folder: Path) -> dict[str, list[str]]:
    """The command lines, all of which take some seconds but the last."""
    short = ["--time-budget-ms", "300"]
    return {
        "annotate": ["annotate", str(model), *short, "-o", str(folder / "annotated")],
        "bench": ["bench", str(model), *short, "--seconds", "1"],
        "explain": ["explain", str(model), *short, "--mode", "profile"],
        "calibrate": ["calibrate", "--quick", "-o", str(folder / "target.json")],
        "finetune": ["finetune", str(model), "--budget", "30", "-o", str(folder / "tuned")],
        "devices": ["devices"],
    }


@dataclass(frozen=True)
class Leftovers:
    """What a command left when it had ended.

    Attributes:
        interrupted: Whether it ran when Ctrl-C was pressed.
        code: Exit status as a shell shows it.
        output: All that it wrote to the terminal.
        files: Names in its temporary folder.
        processes: Process ids that it left running.
        seconds: How long it ran.
        silent: Whether nothing was written after Ctrl-C.
    """

    interrupted: bool
    code: int
    output: bytes
    files: tuple[str, ...]
    processes: tuple[int, ...]
    seconds: float
    silent: bool

    @property
    def was_over(self) -> bool:
        """Whether its work was done when Ctrl-C was pressed, and the process was only about to end."""
        return self.interrupted and self.silent and self.code == 0

    def faults(self, codes: Sequence[int] = (130,)) -> list[str]:
        """What is not as it should be."""
        if _PYTHON_STARTS in self.output:
            return []  # which no program can help
        found = []
        if self.code not in codes:
            found.append(f"exit status {self.code}")
        if self.output.rfind(HIDE) > self.output.rfind(SHOW):
            found.append("the cursor is hidden")
        # Python shows one before the program is loaded.
        if b"Traceback" in self.output and b"ov_autoplace/cli" in self.output:
            found.append("a traceback")
        if self.files:
            found.append(f"left {', '.join(self.files)}")
        if self.processes:
            found.append(f"left processes {self.processes}")
        return found


def interrupt(arguments: Sequence[str], after: float | bytes | None, presses: int = 1) -> Leftovers:
    """Run a command on a terminal and press Ctrl-C ``after`` so many seconds or some output, or never."""
    temporary = tempfile.mkdtemp(prefix="interrupts-")
    mark = f"{os.getpid()}-{time.monotonic_ns()}"
    environment = {**os.environ, "TMPDIR": temporary, MARK: mark, "TERM": "xterm"}
    environment.setdefault(
        "AUTOPLACE_EXTRA_DEVICES", "XCPU=CPU,INFERENCE_NUM_THREADS=1,SNIPPETS_MODE=DISABLE"
    )
    ours, theirs = pty.openpty()
    try:
        with _interrupts_obeyed():
            process = subprocess.Popen(
                [sys.executable, "-c", ENTRY, *arguments],
                stdin=theirs,
                stdout=theirs,
                stderr=theirs,
                start_new_session=True,
                env=environment,
            )
        os.close(theirs)
        output = bytearray()
        start = time.monotonic()
        if isinstance(after, bytes):
            _read(ours, output, process, WAIT, after)
        elif after is not None:
            _read(ours, output, process, after)
        interrupted = after is not None and process.poll() is None
        written = len(output)
        for press in range(presses if interrupted else 0):
            if press:
                _read(ours, output, process, 0.2)
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGINT)
        _read(ours, output, process, WAIT * (1 if interrupted else 10))
        if process.poll() is None:
            process.kill()
        process.wait()
        seconds = time.monotonic() - start
        code = 128 - process.returncode if process.returncode < 0 else process.returncode
        left = _marked(mark)
        if left:  # a process that was killed may take a moment
            time.sleep(1.0)
            left = _marked(mark)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        return Leftovers(
            interrupted,
            code,
            bytes(output),
            # torch keeps a cache there as soon as there is an optimiser.
            files=tuple(name for name in os.listdir(temporary) if not name.startswith("torchinductor_")),
            processes=tuple(left),
            seconds=seconds,
            silent=len(output) == written,
        )
    finally:
        os.close(ours)
        shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def _interrupts_obeyed() -> Iterator[None]:
    """A shell starts what runs in the background with SIGINT ignored, and all its children inherit that."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _read(
    terminal: int,
    output: bytearray,
    process: subprocess.Popen[bytes],
    seconds: float,
    text: bytes | None = None,
) -> None:
    """Take what is written until the process ends, so much time passed or a text was written.

    Time while the whole machine is paused counts as a moment: nobody is late then.
    """
    last = time.monotonic()
    while seconds > 0 and not (text and text in output):
        over = process.poll() is not None
        if select.select([terminal], [], [], 0 if over else min(0.02, seconds))[0]:
            try:
                output += os.read(terminal, 1 << 16)
                over = False
            except OSError:
                pass  # nobody has the other end open
        if over:
            return
        now = time.monotonic()
        seconds -= min(now - last, 1.0)
        last = now


def _marked(mark: str) -> list[int]:
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                environment = (folder / "environ").read_bytes()
            except OSError:
                continue  # ended, or another user's
            if f"{MARK}={mark}".encode() in environment:
                found.append(int(folder.name))
    return found


def main() -> int:
    """Press Ctrl-C many times, print what happened, and fail if anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--commands", default="annotate,bench,explain,calibrate,finetune,devices")
    parser.add_argument("model", type=Path, help="an IR")
    options = parser.parse_args()
    random_ = random.Random(options.seed)
    counts: dict[str, Counter[str]] = {}
    names = options.commands.split(",")
    usual: dict[str, float] = {}
    faulty = 0
    done = 0
    trial = 0
    while done < options.count:
        name = names[trial % len(names)]
        trial += 1
        folder = Path(tempfile.mkdtemp(prefix="interrupts-out-"))
        try:
            arguments = commands(options.model, folder)[name]
            if name not in usual:
                whole = interrupt(arguments, None)
                usual[name] = whole.seconds
                print(f"{name}: {usual[name]:.1f} s undisturbed, exit status {whole.code}", flush=True)
                shutil.rmtree(folder)
                folder.mkdir()
            after = random_.uniform(0.0, usual[name])
            left = interrupt(arguments, after)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        count = counts.setdefault(name, Counter())
        if not left.interrupted or left.was_over:
            count["over before"] += 1
            usual[name] = min(usual[name], left.seconds)
            continue
        done += 1
        # Ctrl-C ends tuning as the end of its budget does.
        found = left.faults((130, 0) if name == "finetune" else (130,))
        count[f"exit status {left.code}"] += 1
        if found:
            faulty += 1
            print(f"{name} after {after:.2f} s: {'; '.join(found)}", flush=True)
            print(left.output[-1500:].decode(errors="replace"), flush=True)
    for name, count in counts.items():
        print(f"{name}: " + ", ".join(f"{what} {number}x" for what, number in sorted(count.items())))
    print(f"{done} interrupts, {faulty} with faults")
    return int(faulty > 0)


if __name__ == "__main__":
    sys.exit(main())
