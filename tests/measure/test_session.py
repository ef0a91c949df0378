"""A session measures a model at static shapes, with which more of it may be folded than of the caller's."""

from __future__ import annotations

import numpy as np
import openvino as ov
from openvino import opset13 as ops

from ov_autoplace.measure.session import ProfilingSession
from ov_autoplace.placement.lane_plan import Lane, LanePlan


def flattening() -> ov.Model:
    """Two branches behind a Reshape to a shape that is computed, and known once that of the input is."""
    entry = ops.parameter([-1, 4, 8], np.float32, name="entry")
    rows = ops.gather(ops.shape_of(entry, name="shape"), ops.constant([0]), ops.constant(0), name="rows")
    wanted = ops.concat([rows, ops.constant(np.array([32]))], 0, name="wanted")
    flat = ops.reshape(entry, wanted, False, name="flat")
    joined = ops.add(ops.tanh(flat, name="left"), ops.sigmoid(flat, name="right"), name="joined")
    return ov.Model([joined], [entry], "flattening")


def test_a_schedule_of_a_dynamic_model_is_timed_at_static_shapes() -> None:
    model = flattening()
    names = [op.get_friendly_name() for op in model.get_ordered_ops()]
    submodel_of = {name: int(name == "right") for name in names if name != "joined"} | {"joined": 2}
    plan = LanePlan((Lane("CPU"), Lane("CPU")), submodel_of, lane_of=(0, 1, 0), rank=(0, 1, 2))

    with ProfilingSession(None, model, ["CPU"], shapes={"entry": [2, 4, 8]}, isolation=False) as session:
        assert "rows" not in {op.get_friendly_name() for op in session.model.get_ops()}
        seconds = session.compile_schedule(plan).run(3, 3)

    assert (np.asarray(seconds) > 0).all()
