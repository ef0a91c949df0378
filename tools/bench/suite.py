"""The benchmark suite, whole or single sections of it.

    python tools/bench/suite.py [--quick] [--virtual-gpu FILE]
    python tools/bench/suite.py --sections placement,scaling
    python tools/bench/suite.py --sections accuracy --with models=held-out size=small placements=12

Every section runs in a process of its own, most pieces of it again in one each: what crashes is recorded
and the rest goes on. A whole run writes benchmarks.json anew after every section, with the page
docs/measured.md and the picture docs/_static/gains.svg; with ``--sections`` the others keep what they were.
Sections outside of a whole run, single quick ones and those with options are written to
``build/bench/results`` instead, unless ``--output`` says where; all are printed. ``build/bench/samples`` has
every sample of a section. Nothing else should run on the machine meanwhile.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness import ROOT
from harness.environment import gpu_variables, head_of, provenance
from harness.picture import draw
from harness.process import Failure, in_child
from harness.report import lines_of, markdown
from harness.result import Result
from ov_autoplace._base.files import write_text_atomically
from sections import ACCEPTED, SECTIONS, call, options_of

_BUILD = ROOT / "build" / "bench"
_SCHEMA = 2
# Sections that the picture shows: networks alone, and several models.
_DRAWN, _RATES = ("width", "overlap"), "applications"


def run_section(
    name: str, quick: bool, seed: int, virtual_gpu: Path | None, pairs: Sequence[str] = ()
) -> dict[str, Any]:
    """One section for ``benchmarks.json``: its result, or why there is none, and where and when it ran."""
    extent = ", ".join(["quick" if quick else "whole", f"seed {seed}", *pairs])
    command = f"python tools/bench/suite.py{' --quick' * quick} --sections {name} --seed {seed}"
    command += f" --with {shlex.join(pairs)}" if pairs else ""
    record: dict[str, Any] = {**provenance(), "extent": extent}
    start = time.perf_counter()
    variables = gpu_variables(virtual_gpu) if SECTIONS[name].needs_gpu else {}
    outcome: Any = variables
    if not isinstance(variables, Failure):
        arguments = {"section": name, "quick": quick, "seed": seed, "command": command}
        arguments["options"] = options_of(name, pairs) if pairs else {}
        outcome = in_child(call, arguments, variables)
    record["seconds"] = time.perf_counter() - start
    if isinstance(outcome, Failure):
        return record | {"failure": outcome.reason}
    samples = _BUILD / "samples" / f"{name}.json"
    samples.parent.mkdir(parents=True, exist_ok=True)
    write_text_atomically(samples, json.dumps(outcome.pop("data")))
    return record | {"result": outcome}


def write(folder: Path, document: Mapping[str, Any]) -> None:
    """All files, which name no folder of this machine: reasons of failures may."""
    document = json.loads(json.dumps(document).replace(f"{ROOT}/", ""))
    pages, pictures = (ROOT / "docs", ROOT / "docs" / "_static") if folder == ROOT else (folder, folder)
    folder.mkdir(parents=True, exist_ok=True)
    write_text_atomically(folder / "benchmarks.json", _text(document))
    write_text_atomically(pages / "measured.md", markdown(document))
    results = {
        name: Result.from_dict(section["result"])
        for name, section in document["sections"].items()
        if "failure" not in section
    }
    drawn = [point for name in _DRAWN if name in results for point in results[name].points]
    if drawn and _RATES in results:
        draw(pictures / "gains.svg", drawn, results[_RATES].ratios)


def _text(document: Mapping[str, Any]) -> str:
    """JSON with a line per section: thousands of samples shall not be thousands of lines."""
    sections = ",\n".join(
        f"{json.dumps(name)}: {json.dumps(record)}" for name, record in document["sections"].items()
    )
    rest = {key: value for key, value in document.items() if key != "sections"}
    return f'{json.dumps(rest, indent=1)[:-2]},\n "sections": {{\n{sections}\n}}\n}}\n'


def _sections(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in SECTIONS]
    if unknown or not names:
        raise argparse.ArgumentTypeError(
            f"there is no section {', '.join(unknown) or '(none given)'}; there are {', '.join(SECTIONS)}"
        )
    return [name for name in SECTIONS if name in names]


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="less than ten minutes on two idle cores")
    parser.add_argument("--sections", type=_sections, metavar="A,B", help=f"of {', '.join(SECTIONS)}")
    parser.add_argument("--with", nargs="+", default=[], metavar="NAME=VALUE", help="options of one section")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--virtual-gpu", type=Path, metavar="FILE", help="variables of tools/virtual_gpu")
    parser.add_argument("--output", type=Path, help="folder of all files (default: where they are published)")
    arguments = parser.parse_args(argv)
    arguments.pairs = getattr(arguments, "with")
    if arguments.pairs:
        if len(arguments.sections or ()) != 1:
            parser.error("--with gives options to one section; name it with --sections")
        try:
            options_of(arguments.sections[0], arguments.pairs)
        except ValueError as cause:
            parser.error(str(cause))
    if arguments.output is None:
        chosen = arguments.sections or ()
        is_look = bool(arguments.pairs) or (arguments.quick and bool(chosen))
        is_published = not is_look and set(chosen) <= set(ACCEPTED)
        arguments.output = ROOT if is_published else _BUILD / "results"
    return arguments


def main(argv: Sequence[str] | None = None) -> None:
    arguments = _arguments(argv)
    given = sys.argv[1:] if argv is None else argv
    document: dict[str, Any] = {
        "schema": _SCHEMA,
        "head": head_of(shlex.join(["python", "tools/bench/suite.py", *given])),
        "sections": {},
    }
    written = arguments.output / "benchmarks.json"
    if arguments.sections and written.exists():
        document["sections"] = json.loads(written.read_text(encoding="utf-8"))["sections"]
    failed = []
    for name in arguments.sections or ACCEPTED:
        record = run_section(name, arguments.quick, arguments.seed, arguments.virtual_gpu, arguments.pairs)
        sections = {**document["sections"], name: record}
        document["sections"] = {key: sections[key] for key in SECTIONS if key in sections}
        write(arguments.output, document)
        if "failure" in record:
            failed.append(name)
        else:
            print(*lines_of(Result.from_dict(record["result"])), sep="\n")
        print(f"{name}: {record.get('failure', 'done')} ({record['seconds']:.0f} s)", flush=True)
    print(f"wrote {written}")
    if failed:
        sys.exit(f"these sections did not end: {', '.join(failed)}")


if __name__ == "__main__":
    main()
