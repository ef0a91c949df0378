"""Every op with its costs: those of its group stand at the heaviest op, and shares add up."""

from __future__ import annotations

import numpy as np
import pytest

from ov_autoplace.explain.explanation import Explanation
from ov_autoplace.explain.hetero import HeteroExplanation
from ov_autoplace.explain.op_costs import op_costs
from random_tables import make_table

TYPES = {"conv": "Convolution", "relu": "Relu", "add": "Add", "softmax": "SoftMax"}


def explained(*devices: int) -> Explanation:
    """A convolution with its ReLU, an Add, and a SoftMax that runs on DEV1 only."""
    table = make_table(
        [[1e-3, 3e-3], [2e-3, 1e-3], [np.inf, 4e-3]],
        [(0, 1.0, [1]), (1, 1.0, [2])],
        names=("conv", "add", "softmax"),
        members=(("weights", "conv", "relu"), ("add",), ("softmax",)),
    )
    return HeteroExplanation(table, np.array(devices, dtype=np.int32))


def test_costs_stand_at_the_heaviest_op_of_a_group() -> None:
    rows = op_costs(explained(0, 1, 1), TYPES)

    assert [(row.name, row.group, row.device) for row in rows] == [
        ("conv", "conv", "DEV0"),
        ("relu", "conv", "DEV0"),
        ("add", "add", "DEV1"),
        ("softmax", "softmax", "DEV1"),
    ]
    assert rows[0].seconds == {"DEV0": 1e-3, "DEV1": 3e-3}
    assert (rows[1].seconds, rows[1].share) == (None, None)


def test_a_device_that_cannot_run_an_op_has_no_time_for_it() -> None:
    assert op_costs(explained(0, 0, 1), TYPES, "soft*")[0].seconds == {"DEV0": None, "DEV1": 4e-3}


@pytest.mark.parametrize("devices", [(0, 0, 1), (0, 1, 1), (1, 1, 1)])
def test_shares_are_of_the_time_where_ops_are_placed(devices: tuple[int, ...]) -> None:
    rows = op_costs(explained(*devices), TYPES)

    own = [row.seconds[row.device] for row in rows if row.seconds]
    shares = [row.share for row in rows if row.share is not None]
    assert sum(shares) == pytest.approx(1)
    assert shares == pytest.approx([seconds / sum(own) for seconds in own])
