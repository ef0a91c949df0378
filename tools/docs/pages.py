"""Runs the code blocks of a hand-written page, and compares what they print with what the page shows.

    python tools/docs/pages.py docs/tutorial.md            # compare
    python tools/docs/pages.py docs/tutorial.md --write    # put in what was printed

A `console` block holds commands after `$ ` and what they print; a `python` block is run in one
namespace per page, and a `text` block right behind it is what it prints; a `python` block that begins
with `# name.py` is written to that file instead. The comment `<!-- needs torch -->` in front of a
block says that it is run only where torch is installed. Blocks of other languages are not run.

Plugins for doctests (Sybil, pytest-markdown-docs) find blocks and run Python, which is a quarter of this.
They neither run commands, nor compare only what is the same on every machine, nor put in what was printed.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

_FENCE = re.compile(
    r"(?:^<!-- needs (?P<needs>\w+) -->\n+)?^```(?P<language>\w+)\n(?P<code>.*?)^```$\n?"
    r"(?:\n^```text\n(?P<output>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)
_FILE_NAME = re.compile(r"# (\S+\.py)\n")
# Numbers, devices and candidates: from here on a line is another one on another machine. What is said of an
# answer begins with its name, and a plan of several models is named after what each of them does.
_MEASURED = re.compile(r"\d|\b(?:X?CPU|GPU|HETERO|portfolio|greedy)\b|(?<=^\* )\w+: ")
_LONGEST_COMMAND_SECONDS = 900
_WIDTH = "160"  # of tables, in characters


@dataclass(frozen=True, slots=True)
class Step:
    """One command, or one block of Python.

    Attributes:
        language: ``console`` or ``python``.
        code: What is run.
        shown: What the page says that it prints.
        span: Where ``shown`` is in the page, begin and end; ``None`` when the page shows nothing.
        needs: A package without which the step is left out, or an empty string.
    """

    language: str
    code: str
    shown: str
    span: tuple[int, int] | None
    needs: str


def steps_of(text: str) -> list[Step]:
    """The executable steps of a page, in order."""
    steps: list[Step] = []
    for block in _FENCE.finditer(text):
        language, needs = block["language"], block["needs"] or ""
        if language == "console":
            steps += _commands(block["code"], block.start("code"), needs)
        elif language == "python":
            span = block.span("output") if block["output"] is not None else None
            steps.append(Step(language, block["code"], block["output"] or "", span, needs))
    return steps


def _commands(code: str, start: int, needs: str) -> Iterator[Step]:
    for part in re.finditer(r"^\$ ((?:.*\\\n)*.*\n)((?:(?!\$ ).*\n)*)", code, re.MULTILINE):
        span = (start + part.start(2), start + part.end(2))
        yield Step("console", part[1], part[2], span, needs)


def run(steps: list[Step], folder: Path) -> Iterator[tuple[Step, str]]:
    """Run steps in ``folder``, which is the working folder meanwhile; yields each with what it printed.

    Steps that need a package that is not installed are left out.

    Raises:
        RuntimeError: A command ended with an error.
    """
    namespace: dict[str, object] = {"__name__": "__main__"}
    before = Path.cwd()
    with mock.patch.dict(os.environ):
        os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        os.chdir(folder)
        try:
            for step in steps:
                if step.needs and importlib.util.find_spec(step.needs) is None:
                    continue
                yield step, _printed(step, namespace)
        finally:
            os.chdir(before)


def _printed(step: Step, namespace: dict[str, object]) -> str:
    if step.language == "python":
        named = _FILE_NAME.match(step.code)
        if named:
            Path(named[1]).write_text(step.code, encoding="utf-8")
            return ""
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(step.code, "<page>", "exec"), namespace)  # our own documents
        return out.getvalue()
    if step.code.startswith("export "):
        os.environ.update(word.split("=", 1) for word in shlex.split(step.code)[1:])
        return ""
    done = subprocess.run(
        ["bash", "-c", step.code],
        capture_output=True,
        text=True,
        timeout=_LONGEST_COMMAND_SECONDS,
        check=False,
        env={**os.environ, "COLUMNS": _WIDTH},  # whoever runs it
    )
    if done.returncode:
        raise RuntimeError(f"`{step.code.strip()}` ended with {done.returncode}: {done.stderr}")
    return "".join(line.rstrip() + "\n" for line in done.stdout.splitlines())


def differences(shown: str, printed: str) -> list[str]:
    """Lines of a page that the program does not print, apart from what depends on the machine.

    Of a line, what comes before its first number, device or candidate counts; of a table, its title,
    the heading of its first column, and that it has rows; of a tree, its title. More may be printed than a
    page shows: which tables there are depends on the answer, and the answer on the machine.
    """
    wanted, found = _skeleton(shown), _skeleton(printed)
    missing, position = [], 0
    for line in wanted:
        at = next((i for i in range(position, len(found)) if found[i].startswith(line)), None)
        if at is None:
            missing.append(line)
        else:
            position = at + 1
    if printed.strip() and not shown.strip():
        missing.append("(the page shows nothing)")
    return missing


def _skeleton(text: str) -> list[str]:
    """What every run prints: beginnings of sentences, and first headings of tables that have rows."""
    kept = []
    for line in text.splitlines():
        if line.startswith("┃"):
            heading = line.split("┃")[
                1
            ].strip()  # empty in a line of other headings, of which some have several
            kept += ["table of " + heading] if heading else []
        elif line.startswith("│"):
            if kept[-1] != "row":
                kept.append("row")
        elif line.strip() and line[0] not in "┏┡└├ ":
            kept.append(_MEASURED.split(line)[0])
    return kept


def rewritten(text: str, printed: list[tuple[Step, str]]) -> str:
    """The page with what was printed in place of what it showed."""
    for step, output in reversed(printed):
        if step.span is not None:
            text = text[: step.span[0]] + output + text[step.span[1] :]
    return text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("pages", type=Path, nargs="+")
    parser.add_argument("--write", action="store_true", help="put what is printed into the pages")
    arguments = parser.parse_args()
    failed = False
    for page in [path.resolve() for path in arguments.pages]:
        text = page.read_text(encoding="utf-8")
        printed = []
        with tempfile.TemporaryDirectory() as folder:
            for step, output in run(steps_of(text), Path(folder)):
                print(f"{page.name}: {step.code.splitlines()[0]}", file=sys.stderr)
                printed.append((step, output))
        if arguments.write:
            page.write_text(rewritten(text, printed), encoding="utf-8")
            continue
        for step, output in printed:
            for line in differences(step.shown, output):
                failed = True
                print(f"{page.name}: {step.code.splitlines()[0]}: not printed: {line}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
