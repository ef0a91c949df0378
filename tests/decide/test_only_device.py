"""One device, and one way to run the model on it: there is nothing to decide, and nothing is measured."""

from __future__ import annotations

from pathlib import Path

import openvino as ov
import pytest

from command_line import Command, two_layers
from ov_autoplace.decide import outlook
from ov_autoplace.decide.machine import Machine
from ov_autoplace.decide.outlook import Outlook
from ov_autoplace.decide.place import place
from ov_autoplace.errors import OptionError, PlacementError
from ov_autoplace.plan.findings import Kind


@pytest.fixture(autouse=True)
def _no_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    """As for a model that is too large for fewer threads or lanes to be faster."""
    monkeypatch.setattr(Outlook, "of", lambda *_: Outlook())
    monkeypatch.setattr(outlook, "is_worth_dividing", lambda *_: False)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Devices of each session in which something is compiled and timed."""
    sessions: list[tuple[str, ...]] = []
    open_it = Machine.open

    def noting(self: Machine, *how: object) -> object:
        sessions.append(self.devices)
        return open_it(self, *how)  # type: ignore[arg-type]

    monkeypatch.setattr(Machine, "open", noting)
    return sessions


@pytest.mark.parametrize("mode", ["PROFILE", "TUNE"])
@pytest.mark.parametrize("executor", ["HETERO", "AUTO"])
def test_the_only_device_is_taken_as_it_is(opened: list[tuple[str, ...]], mode: str, executor: str) -> None:
    model = two_layers([1, 3, 16, 16])
    placement = place(model, "CPU", mode, executor=executor)

    assert opened == []
    assert set(placement.to_dict().values()) == {"CPU"}
    assert set(placement.to_dict()) == {op.get_friendly_name() for op in model.get_ops()}
    assert placement.decision is not None
    assert placement.decision.kind is Kind.ONLY_DEVICE


def test_what_may_be_faster_is_still_measured(
    opened: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Outlook, "of", lambda *_: Outlook(may_win=True))
    place(two_layers([1, 3, 16, 16]), "CPU", time_budget_ms=50, executor="HETERO")
    assert opened == [("CPU",)]


def test_pins_and_limits_are_looked_at_all_the_same() -> None:
    model = two_layers([1, 3, 16, 16])
    with pytest.raises(OptionError, match="this machine has no such device"):
        place(model, "CPU", pins={"first": "FPGA"})
    with pytest.raises(OptionError, match="matches no op"):
        place(model, "CPU", pins={"ghost*": "CPU"})
    with pytest.raises(PlacementError, match="memory limits"):
        place(model, "CPU", memory_limits={"CPU": 10})


def test_explain_measures_what_it_shows(cli: Command, small_ir: Path) -> None:
    report = cli("explain", small_ir, "-d", "CPU", "--executor", "hetero", "--json").json()

    assert report["cost_source"].startswith("profiled")
    assert report["predicted_ms"] > 0
    assert report["reason"] == "only_device"


def test_an_op_that_the_device_cannot_run_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from ov_autoplace.errors import ModelError

    monkeypatch.setattr(ov.Core, "query_model", lambda *_: {})
    with pytest.raises(ModelError, match="can run on none of CPU"):
        place(two_layers([1, 3, 16, 16]), "CPU", core=ov.Core())
