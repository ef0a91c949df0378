"""Checks what no linter sees: the type stub of the C++ core, links of the documents, the changelog.

``--write`` regenerates the stub instead of checking it. Needs the package installed, with nanobind.
"""

from __future__ import annotations

import argparse
import difflib
import re
import subprocess
import sys
from importlib import import_module, metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STUB = ROOT / "ov_autoplace" / "_core.pyi"
_LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)")


def generated_stub() -> str:
    """The stub that the installed extension asks for, formatted like our own sources."""
    from nanobind.stubgen import StubGen

    generator = StubGen(import_module("ov_autoplace._core"), include_docstrings=True, quiet=True)
    generator.put(generator.module)
    formatter = [Path(sys.executable).with_name("ruff"), "format", "--stdin-filename", STUB.name, "-"]
    done = subprocess.run(
        formatter, input=generator.get(), capture_output=True, text=True, check=True, cwd=ROOT
    )
    return done.stdout


def stub_problems() -> list[str]:
    """Differences between the committed stub and the generated one."""
    committed = STUB.read_text(encoding="utf-8") if STUB.exists() else ""
    difference = list(
        difflib.unified_diff(
            committed.splitlines(), generated_stub().splitlines(), "committed", "generated", lineterm=""
        )
    )
    if not difference:
        return []
    return [f"{STUB.relative_to(ROOT)} is out of date (run `make stub`):", *difference]


def link_problems() -> list[str]:
    """Relative links in the documents that lead nowhere."""
    problems = []
    for document in (ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))):
        text = document.read_text(encoding="utf-8") if document.exists() else ""
        if not text.strip():
            problems.append(f"{document.relative_to(ROOT)} is missing or empty")
        problems += [
            f"{document.relative_to(ROOT)} links to {target}, which does not exist"
            for target in _LINK.findall(text)
            if not (document.parent / target).exists()
        ]
    return problems


def changelog_problems() -> list[str]:
    """The version of the package has no heading in the changelog."""
    version = metadata.version("ov-autoplace")
    if f"## [{version}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"):
        return []
    return [f"CHANGELOG.md has no section [{version}]"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="regenerate the stub")
    if parser.parse_args().write:
        STUB.write_text(generated_stub(), encoding="utf-8")
        print(f"wrote {STUB.relative_to(ROOT)}")
        return 0
    problems = [*stub_problems(), *link_problems(), *changelog_problems()]
    print("\n".join(problems) if problems else "stub, links and changelog are in place")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
