"""The benchmark of rates on one device: what is compared, and what the table says of it."""

from __future__ import annotations

import pytest

from sections.rate import _hints_result, compare_hints


def test_ratios_are_over_cpu_in_the_same_way_of_calling():
    rates = {
        "threads": {"AUTOPLACE": [20.0] * 9, "CPU": [10.0] * 9, "CPU again": [11.0] * 9},
        "queue": {"AUTOPLACE": [5.0] * 9, "CPU": [10.0] * 9, "CPU again": [10.0] * 9},
    }
    result = _hints_result({"net": {"LATENCY": {"is_device": False, "rates": rates}}}, 0, ["x: it failed"])
    ((network, hint, is_device, *cells),) = result.tables[0].rows
    assert (network, hint, is_device) == ("net", "LATENCY", "no")
    assert [cell.split(" ")[0] for cell in cells] == ["2.00", "1.10", "0.50", "1.00"]
    assert [case.ratio for case in result.cases] == pytest.approx([0.5, 2.0])
    assert list(result.remarks) == ["x: it failed"]


def test_a_network_runs_under_every_hint(monkeypatch):
    from sections import rate

    monkeypatch.setattr(rate, "_ROUNDS", 2)
    monkeypatch.setattr(rate, "_SAMPLE_SECONDS", 0.002)
    found = compare_hints("tiny/table_classifier", 0)
    assert list(found) == ["LATENCY", "THROUGHPUT", "CUMULATIVE_THROUGHPUT", "2 streams"]
    for outcome in found.values():
        for contestants in outcome["rates"].values():
            assert set(contestants) == {"AUTOPLACE", "CPU", "CPU again"}
            assert all(value > 0 for values in contestants.values() for value in values)
    assert found["2 streams"]["is_device"]  # who sets streams gets the device as it is
