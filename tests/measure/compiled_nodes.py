"""Nodes of compiled models, as much of them as the attribution reads, for tests."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Node:
    """One of them, with no time."""

    name: str
    original_names: list[str] = field(default_factory=list)
    consumers: list[str] = field(default_factory=list)
    type: str = "Some"
    layout: str = "abcd"
    precision: str = "FP32"
    status: str = "EXECUTED"
