"""The numbers behind the learning curve, and that the picture is one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ov_autoplace.errors import OutputError
from ov_autoplace.training.finetuning.learning_curve import best_so_far, draw_learning_curve
from ov_autoplace.training.finetuning.task import AFTER, ZERO_SHOT

pytestmark = pytest.mark.torch  # matplotlib comes with the packages for training


def line(number: int, relative: float | None, kind: str = "measured", **fields: Any) -> dict[str, Any]:
    values = {"model": "net", "kind": kind, "measurement": number, "relative": relative, "best": 1.0}
    return values | {"source": "policy", "note": ""} | fields


LINES = [
    line(1, 1.0, source="CPU"),
    line(2, None),
    line(3, 1.4, source=ZERO_SHOT),
    line(3, 1.4, kind="again"),
    line(4, 0.9),
    line(4, 0.9, kind="confirmed", best=0.9),
    line(5, 0.5, best=0.9),
    line(5, 0.5, kind="proposed", note=AFTER, best=0.9),
    line(1, 1.0, model="other"),
]


def test_the_curve_is_the_best_that_was_proven_after_each_measurement() -> None:
    numbers, best = best_so_far([one for one in LINES if one["model"] == "net"])
    assert numbers.tolist() == [1, 2, 3, 4, 5]
    assert best.tolist() == [1.0, 1.0, 1.0, 0.9, 0.9]  # 0.5 was seen once only


def test_before_the_first_success_there_is_nothing_to_show() -> None:
    assert np.isinf(best_so_far([line(1, None, best=None)])[1]).all()


@pytest.mark.parametrize("lines", [LINES, [], [line(1, None, best=None)]])
def test_a_picture_is_drawn_of_whatever_was_measured(tmp_path: Path, lines: list[dict[str, Any]]) -> None:
    path = tmp_path / "learning_curve.png"
    draw_learning_curve(lines, path)
    assert path.read_bytes().startswith(b"\x89PNG\r\n")
    assert [file.name for file in tmp_path.iterdir()] == ["learning_curve.png"]


def test_a_folder_that_is_not_there_is_an_output_error(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="cannot write"):
        draw_learning_curve(LINES, tmp_path / "missing" / "curve.png")
