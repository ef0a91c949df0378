"""What the pages of the site show is what happens, and the references name all that there is."""

from __future__ import annotations

import itertools
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from places import ROOT

sys.path.insert(0, str(ROOT / "tools" / "docs"))

import pages
import reference

from ov_autoplace.cli.app import app
from ov_autoplace.cli.examples import EXAMPLES
from ov_autoplace.decide.options import PROPERTY_NAMES, PlacerOptions

DOCUMENTS = sorted((ROOT / "docs").rglob("*.md"))
# The tutorial ends with fine-tuning, and that of a camera writes a page: each runs where all of it can.
RUN = (
    "cost-model.md",
    "extending.md",
    pytest.param("tutorial.md", marks=pytest.mark.torch),
    pytest.param("tutorial-camera.md", marks=pytest.mark.bokeh),
)

PAGE = """
```console
$ echo 7 apples
3 apples
$ printf 'a\\nb\\n'
a
c
```

```python
print(6 * 7)
```

```text
42
```

```sh
exit 1
```
"""


@pytest.mark.alone
@pytest.mark.optional
@pytest.mark.parametrize("page", RUN)
def test_a_page_shows_what_its_code_prints(page: str) -> None:
    runner = [sys.executable, str(ROOT / "tools" / "docs" / "pages.py"), str(ROOT / "docs" / page)]
    done = subprocess.run(runner, capture_output=True, text=True, timeout=1800, check=False)

    assert done.returncode == 0, done.stdout + done.stderr


def test_steps_are_commands_and_blocks_of_python_with_what_they_print() -> None:
    steps = pages.steps_of(PAGE)

    assert [step.code for step in steps] == ["echo 7 apples\n", "printf 'a\\nb\\n'\n", "print(6 * 7)\n"]
    assert [step.shown for step in steps] == ["3 apples\n", "a\nc\n", "42\n"]


def test_another_word_is_a_difference_and_another_number_is_none(tmp_path: Path) -> None:
    found = [pages.differences(step.shown, out) for step, out in pages.run(pages.steps_of(PAGE), tmp_path)]

    assert found == [[], ["c"], []]


def test_who_won_is_no_difference_but_that_somebody_did_is_expected() -> None:
    assert not pages.differences("* portfolio was measured fastest\n", "* CPU is the fastest device\n")
    assert pages.differences("* portfolio was measured fastest\n", "CPU is the fastest device\n")


def test_output_that_a_page_does_not_show_is_a_difference() -> None:
    assert pages.differences("", "something\n")


def test_tables_are_compared_by_title_and_heading() -> None:
    shown = "Devices\n┏━━┓\n┃ device ┃ memory ┃\n┡━━┩\n│ CPU │ 1 │\n└──┘\n"

    assert not pages.differences(shown, shown.replace("CPU", "GPU").replace(" memory ┃", ""))
    assert pages.differences(shown, shown.replace("Devices", "Machines"))
    assert pages.differences(shown, shown.replace("device", "name"))
    assert pages.differences(shown, shown.replace("│ CPU │ 1 │\n", ""))


def test_written_pages_show_what_was_printed(tmp_path: Path) -> None:
    printed = list(pages.run(pages.steps_of(PAGE), tmp_path))

    assert pages.rewritten(PAGE, printed) == PAGE.replace("3 apples", "7 apples").replace("\nc\n", "\nb\n")


def test_the_options_page_has_every_property_with_its_argument_and_default() -> None:
    sections = reference.options_markdown().split("## ")[1:]

    assert {section.splitlines()[0] for section in sections} == {*PROPERTY_NAMES, "solvers", "seed"}
    pin = next(section for section in sections if section.startswith("AUTOPLACE_PINS"))
    assert "`pins`" in pin
    assert "`--pin`" in pin
    mode = next(section for section in sections if section.startswith("AUTOPLACE_MODE"))
    assert "| default | `PROFILE` |" in mode


def test_the_examples_on_the_options_page_are_valid() -> None:
    options = PlacerOptions.from_arguments(reference.EXAMPLES)

    assert options.pins == {"*softmax*": "CPU"}
    assert options.memory_limits == {"GPU": 2 * 2**30}
    assert options.shapes == {"input": [1, 3, 224, 224]}
    assert options.time_budget_ms == 5000


def test_the_command_line_page_has_every_command() -> None:
    page = reference.command_line_markdown()
    headings = re.findall(r"^## `ov-autoplace ([\w-]+)`$", page, re.MULTILINE)
    groups = app.registered_groups

    assert headings == [entry.name for entry in (*app.registered_commands, *groups)]
    for group in groups:
        below = re.findall(rf"^### `ov-autoplace {group.name} ([\w-]+)`$", page, re.MULTILINE)
        assert below == [command.name for command in group.typer_instance.registered_commands]


@pytest.mark.parametrize("document", [ROOT / "README.md", *DOCUMENTS], ids=lambda path: path.name)
def test_every_command_on_a_page_is_one_that_there_is(document: Path) -> None:
    text = document.read_text(encoding="utf-8").replace("\\\n", " ")
    for language, block in re.findall(r"^```(sh|console|)\n(.*?)^```$", text, re.M | re.S):
        prompt = r"\$ " if language == "console" else ""
        for line in re.findall(rf"^{prompt}(?:\w+=(?:\"[^\"]*\"|\S*) )*ov-autoplace (.*)$", block, re.M):
            _parse(shlex.split(line, comments=True))


def test_every_command_has_two_examples_that_it_understands() -> None:
    for command, examples in EXAMPLES.items():
        assert len(set(examples)) == 2
        for example in examples:
            named = command.removesuffix(" decide").split()
            assert shlex.split(example)[: len(named)] == named
            _parse(shlex.split(example))


def _parse(arguments: list[str]) -> None:
    """Names of commands and options are looked up, files and values are not.

    Raises:
        Exception: There is no such command or option.
    """
    command: Any = typer.main.get_command(app)
    words = list(itertools.takewhile(lambda word: word not in ("|", ">", "&&"), arguments))
    words = [word for word in words if word not in ("--help", "--debug", "--version")]
    while words and hasattr(command, "commands"):
        command = command.commands[words.pop(0) if words[0] in command.commands else "decide"]
    if command.name != "benchmark_app":
        command.make_parser(typer.Context(command)).parse_args(words)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_to_other_sites_are_secure_and_well_formed(document: Path) -> None:
    links = re.findall(r"\]\(([a-z+]+:[^)]*)\)", document.read_text(encoding="utf-8"))

    assert [link for link in links if not re.fullmatch(r"https://[\w.-]+\.\w+(/\S*)?", link)] == []
