"""Which facts hold for which releases of OpenVINO."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import openvino as ov
import pytest

from ov_autoplace._base import releases


def test_known_releases_are_in_their_order_and_begin_with_the_floor() -> None:
    numbers = [tuple(map(int, release.split("."))) for release in releases.KNOWN]

    assert numbers == sorted(set(numbers))
    assert releases.KNOWN[0] == releases.FLOOR == "2025.4.0"


@pytest.mark.parametrize(
    ("release", "imports_mixes"),
    [("2025.4.0", False), ("2026.3.1", False), ("2026.4.0", True), ("2026.4.1", True)],
)
def test_a_fact_holds_from_a_release_on(release: str, imports_mixes: bool) -> None:
    assert releases.facts(release).imports_mixes is imports_mixes


@pytest.mark.parametrize("release", ["2026.4.2", "2026.10.0", "2027.0.0", "custom_master_0123456789"])
def test_later_releases_count_as_the_newest(release: str) -> None:
    assert releases.facts(release) == releases.facts(releases.KNOWN[-1])
    assert not releases.is_known(release)
    assert not releases.is_too_old(release)


@pytest.mark.parametrize(
    ("release", "too_old"),
    [("2025.3.9", True), ("2024.6.0", True), ("2025.4.0", False), ("2025.10.0", False)],
)
def test_what_is_before_the_floor_is_too_old(release: str, too_old: bool) -> None:
    assert releases.is_too_old(release) is too_old


@pytest.mark.parametrize(
    ("version", "release"),
    [
        ("2026.4.1-22982-e213a147257-releases/2026/4", "2026.4.1"),
        ("2026.5.0.dev20261101", "2026.5.0"),
        ("custom_master_0123456789", "custom_master_0123456789"),
    ],
)
def test_the_release_is_the_version_without_its_build(
    version: str, release: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ov, "__version__", version)

    assert releases.installed() == release


def test_the_documents_tell_the_table() -> None:
    page = (Path(__file__).parents[2] / "docs" / "releases.md").read_text(encoding="utf-8")
    told = dict(re.findall(r"^\| `(\w+)` \| ([\d.]+) \|", page, re.MULTILINE))

    assert told == {fact.name: releases.first_with(fact.name) for fact in fields(releases.Facts)}
    assert f"from {releases.FLOOR} on" in page
    assert all(release in page for release in releases.KNOWN)
