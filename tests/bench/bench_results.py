"""Made-up results and documents of the suite."""

from __future__ import annotations

from typing import Any

from harness.result import Case, Ratio, Result, Table


def result_of(*ratios: Ratio, **fields: Any) -> Result:
    return Result("A title", ratios=ratios, command="python tools/bench/it.py", **fields)


def record_of(result: Result | None, extent: str = "quick, seed 0", failure: str = "") -> dict[str, Any]:
    record: dict[str, Any] = {
        "date": "2026-01-01 00:00 UTC",
        "machine": "a machine",
        "commit": "0123456789ab",
        "extent": extent,
        "seconds": 12.3,
    }
    return record | ({"failure": failure} if result is None else {"result": result.to_dict()})


def document_of(**sections: dict[str, Any]) -> dict[str, Any]:
    return {"schema": 1, "head": {"command": "make bench", "machine": "a machine"}, "sections": sections}


TABLE = Table("Latencies", ("model", "ms"), (("a|b <script>", "1.0"), ("c", "2.0")), "A note.")
LOSING = Case("resnet", "CPU", 1.25, "1.25 [1.2, 1.3]")
WINNING = Case("bert", "CPU", 0.5, "")
