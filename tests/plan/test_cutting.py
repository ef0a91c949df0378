"""Models that are cut for lanes: what is seen from outside, what is stored, what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

from lane_models import F32, adding, by_name, on_cpu, on_lanes, towers, typed
from ov_autoplace.devices.extension import add_extension, is_scheduled, schedule_ops
from ov_autoplace.errors import PlacementError
from ov_autoplace.plan.cutting import cut
from ov_autoplace.plan.lane import Form, Lane
from ov_autoplace.plan.plan import LanePlan
from ov_autoplace.plan.schedulable import ops_of
from ov_autoplace.plan.scheduled import lanes_of, plan_of, scheduled_model, with_properties
from ov_autoplace.plan.stored_submodels import WeightsFile
from ov_autoplace.plugin.scheduled import compile_scheduled


def shown(model: ov.Model) -> list[tuple[str, set[str], str, str, str]]:
    """What a program sees of inputs and outputs."""
    return [
        (
            port.node.get_friendly_name(),
            port.names,
            port.element_type.to_string(),
            str(port.partial_shape),
            str(port.node.layout),
        )
        for port in [*model.inputs, *model.outputs]
    ]


def kinds(model: ov.Model) -> list[str]:
    return sorted(op.get_type_name() for op in model.get_ops())


def stored_bytes(model: ov.Model) -> int:
    """Bytes of all different constants that a scheduled model holds."""
    return sum(op.get_byte_size() for op in model.get_ops() if op.get_type_name() == "Constant")


def test_from_outside_it_is_the_same_model() -> None:
    model = towers()
    model.inputs[0].tensor.set_names({"left", "links"})
    model.inputs[1].node.set_layout(ov.Layout("NC"))
    model.outputs[0].node.set_layout(ov.Layout("NC"))
    model.inputs[0].node.get_rt_info()["user_data:mine"] = "kept"
    model.set_rt_info("kept", ["conversion", "tool"])

    scheduled = scheduled_model(model, by_name(model, (0, 1, 0)))

    assert shown(scheduled) == shown(model)
    assert scheduled.get_friendly_name() == model.get_friendly_name()
    assert scheduled.inputs[0].node.get_rt_info()["user_data:mine"].value == "kept"
    assert scheduled.get_rt_info(["conversion", "tool"]).value == "kept"


def test_the_callers_model_is_not_touched() -> None:
    model = towers()
    before = [(op.get_friendly_name(), str(op.outputs())) for op in model.get_ordered_ops()]

    scheduled_model(model, by_name(model, (0, 1, 0)))

    assert [(op.get_friendly_name(), str(op.outputs())) for op in model.get_ordered_ops()] == before
    assert not model.has_rt_info(["autoplace", "schedule"])


def test_names_that_repeat_stay_those_of_inputs_and_outputs() -> None:
    x, y = (ops.parameter([2], np.float32, name="same") for _ in range(2))
    total = ops.add(ops.relu(x, name="0/relu"), y, name="1/add")
    model = ov.Model([ops.result(total, name="same")], [x, y], "repeats")

    scheduled = scheduled_model(model, by_name(model, (0, 1)))

    assert [op.get_friendly_name() for op in [*scheduled.get_parameters(), *scheduled.get_results()]] == [
        "same"
    ] * 3


def test_its_plan_can_be_read_also_from_a_file(tmp_path: Path) -> None:
    model = towers()
    plan = by_name(model, (0, 1, 1), {"INFERENCE_NUM_THREADS": "1", "odd;key": "a=b,c %"}, rank=(5, 3, 9))
    scheduled = scheduled_model(model, plan)
    assert is_scheduled(scheduled)
    assert not is_scheduled(model)
    assert plan_of(model) is None

    ov.save_model(scheduled, tmp_path / "scheduled.xml")
    core = ov.Core()
    add_extension(core)
    read = core.read_model(tmp_path / "scheduled.xml")

    for found in (plan_of(scheduled), plan_of(read)):
        assert found is not None
        lanes = {op: found.lane_of[s] for op, s in found.submodel_of.items()}
        assert lanes == {op: plan.lane_of[s] for op, s in plan.submodel_of.items()}
        assert found.lanes == plan.lanes
        assert sorted(zip(found.lane_of, found.rank, strict=True)) == [(0, 5), (1, 3), (1, 9)]
    (op,) = schedule_ops(read)
    assert tuple(lanes_of(op)) == plan.lanes


@pytest.mark.parametrize("form", [Form(channels_last=True), Form(bf16=True), Form(True, True)])
def test_a_tensor_is_handed_over_as_the_plan_says(form: Form) -> None:
    x = ops.parameter([1, 3, 4, 5], np.float32, name="x")
    first = ops.relu(x, name="0/relu")
    pooled = ops.avg_pool(first, [1, 1], [0, 0], [0, 0], [2, 2], False, name="1/pooled")
    model = ov.Model([ops.result(pooled), ops.result(first)], [x], "forms")
    plan = by_name(model, (0, 1))
    plan = LanePlan(plan.lanes, plan.submodel_of, plan.lane_of, plan.rank, {"0/relu": form})
    clone = model.clone()
    parts = cut(clone, ops_of(clone), plan)

    handed = parts.submodels[1].model.inputs[0]
    assert list(handed.shape) == ([1, 4, 5, 3] if form.channels_last else [1, 3, 4, 5])
    assert handed.element_type == (ov.Type.bf16 if form.bf16 else ov.Type.f32)
    data = np.arange(60, dtype=np.float32).reshape(1, 3, 4, 5) / 16
    expected, passed = on_cpu(ov.Core(), model, [data])
    answer = on_lanes(ov.Core(), model, plan)([data])
    np.testing.assert_allclose(answer[0], expected, atol=1e-2 if form.bf16 else 1e-6)
    # What leaves the model is as the model has it.
    np.testing.assert_array_equal(answer[1], passed)
    found = plan_of(scheduled_model(model, plan))
    assert found is not None
    assert found.forms == plan.forms


def test_a_damaged_note_of_the_plan_is_refused() -> None:
    model = towers()
    scheduled = scheduled_model(model, by_name(model, (0, 1, 0)))
    scheduled.set_rt_info("{", ["autoplace", "schedule"])
    with pytest.raises(PlacementError, match="plan for lanes is damaged"):
        plan_of(scheduled)


def test_submodels_come_in_topological_order_by_rank() -> None:
    model = towers()
    plan = by_name(model, (0, 1, 0), rank=(7, 2, 1))
    found = plan_of(scheduled_model(model, plan))
    assert found is not None
    assert found.submodel_of["1/relu0"] == 0
    assert found.submodel_of["0/relu0"] == 1
    assert found.submodel_of["2/sum"] == 2
    assert found.rank == (2, 7, 1)


def test_submodels_in_which_nothing_runs_are_left_out() -> None:
    model = towers()
    plan = by_name(model, (0, 1, 0))
    emptier = LanePlan(
        plan.lanes, {op: s + 2 for op, s in plan.submodel_of.items()}, (0, 0, *plan.lane_of), (0, 1, 2, 3, 4)
    )
    found = plan_of(scheduled_model(model, emptier))
    assert found is not None
    assert len(found.lane_of) == 3


def test_weights_that_submodels_share_are_stored_once() -> None:
    layers, width = 3, 64
    apart, shared = (towers(layers, width, shared=shared) for shared in (False, True))
    sizes = [stored_bytes(scheduled_model(model, by_name(model, (0, 1, 0)))) for model in (apart, shared)]
    weights = layers * width * width * 4
    assert 2 * weights < sizes[0] < 2 * weights + 20_000
    assert weights < sizes[1] < weights + 20_000


def test_weights_in_a_file_apart_are_those_of_the_model(tmp_path: Path) -> None:
    """Those that are in the file stay where they are, others follow, and both are read back."""
    layers, width = 3, 32
    model, other = towers(layers, width), towers(layers + 1, width)  # the latter's are drawn in another order
    ov.save_model(model, tmp_path / "model.xml", compress_to_fp16=False)
    before = (tmp_path / "model.bin").read_bytes()
    inputs = [np.full((1, width), value, np.float32) for value in (0.5, -0.25)]
    with (tmp_path / "model.bin").open("r+b") as file:
        weights = WeightsFile(file.fileno(), tmp_path / "model.xml")
        for each, lanes in ((model, (0, 1, 0)), (model, (0, 0, 0)), (other, (1, 0, 1))):
            scheduled = scheduled_model(each, by_name(each, lanes), weights)
            assert stored_bytes(scheduled) < 20_000
            (op,) = schedule_ops(scheduled)
            ov.utils.replace_node(op.input_value(op.get_input_size() - 1).get_node(), weights.constant())
            answer = compile_scheduled(ov.Core(), scheduled, F32)(inputs)[0]
            np.testing.assert_allclose(answer, on_cpu(ov.Core(), each, inputs)[0], rtol=1e-5)
    after = (tmp_path / "model.bin").read_bytes()
    assert after.startswith(before)
    new = 2 * width * width * 4
    assert new <= len(after) - len(before) < new + 200


def test_what_is_stored_is_the_same_each_time() -> None:
    model = towers()
    texts = [
        [
            op.get_data().tobytes()
            for op in scheduled_model(model, by_name(model, (0, 1, 0))).get_ordered_ops()
            if op.get_type_name() == "Constant"
        ]
        for _ in range(2)
    ]
    assert texts[0] == texts[1]


def test_computations_from_constants_alone_are_in_every_submodel_that_reads_them() -> None:
    x = ops.parameter([2, 4], np.float32, name="x")
    stored = ops.constant(np.arange(16, dtype=np.int8).reshape(4, 4))
    scale = ops.constant(np.float32(0.5))
    weights = ops.multiply(ops.convert(stored, "f32", name="0/convert"), scale, name="0/weights")
    first = ops.matmul(x, weights, False, False, name="0/first")
    second = ops.matmul(first, weights, False, False, name="1/second")
    model = ov.Model([ops.result(second)], [x], "compressed")

    scheduled = scheduled_model(model, by_name(model, (0, 1)))

    found = plan_of(scheduled)
    assert found is not None
    assert dict(found.submodel_of) == {"0/first": 0, "1/second": 1}
    (op,) = schedule_ops(scheduled)
    # One output of the first submodel, read by the second: the weights are not handed over.
    assert op.get_attributes()["sources"] == [1, -1, 0, 1, 0, 0]


def test_state_stays_outside_with_its_name() -> None:
    model = adding("memory")
    scheduled = scheduled_model(model, by_name(model, (0, 1)))
    assert [v.info.variable_id for v in scheduled.get_variables()] == ["memory"]
    assert {"ReadValue", "Assign", "Schedule", "Multiply"} <= set(kinds(scheduled))


def test_outputs_that_nothing_runs_for_stay_as_they_are() -> None:
    x = ops.parameter([2], np.float32, name="x")
    x.output(0).set_names({"given"})
    constant = ops.constant(np.float32([1, 2]), name="constant")
    relu = ops.relu(x, name="0/relu")
    relu.output(0).set_names({"made"})
    results = [ops.result(value, name=f"r{i}") for i, value in enumerate([x, constant, relu, relu])]
    model = ov.Model(results, [x], "ends")

    scheduled = scheduled_model(model, by_name(model, (0,)))

    assert [(port.names, port.node.get_friendly_name()) for port in scheduled.outputs] == [
        (port.names, port.node.get_friendly_name()) for port in model.outputs
    ]
    sources = [result.input_value(0).get_node().get_type_name() for result in scheduled.get_results()]
    assert sources == ["Parameter", "Constant", "Schedule", "Schedule"]


def test_a_model_in_which_nothing_runs_is_left_as_it_is() -> None:
    x = ops.parameter([2], np.float32, name="x")
    model = ov.Model([ops.result(x, name="r")], [x], "nothing")
    assert kinds(scheduled_model(model, by_name(model, ()))) == ["Parameter", "Result"]


@pytest.mark.parametrize("element", ["bf16", "f16", "f64", "i64", "u64", "u32", "i16", "u16", "boolean"])
def test_types_that_the_op_cannot_carry_are_converted(element: str) -> None:
    model = typed(getattr(ov.Type, element))
    scheduled = scheduled_model(model, by_name(model, (0, 1)))
    assert shown(scheduled) == shown(model)
    (op,) = schedule_ops(scheduled)
    carried = {o.get_element_type().to_string() for o in [*op.outputs(), *op.input_values()]}
    assert carried <= {"f32", "i32", "u8"}


@pytest.mark.parametrize("element", ["f32", "i32", "i8", "u8"])
def test_types_that_the_op_carries_are_not(element: str) -> None:
    model = typed(getattr(ov.Type, element))
    assert "Convert" not in kinds(scheduled_model(model, by_name(model, (0, 1))))


def test_lanes_get_properties_of_their_devices_but_keep_their_own() -> None:
    model = towers()
    plan = by_name(model, (0, 1, 0), {"NUM_STREAMS": "0"}, devices=("CPU", "GPU"))
    scheduled = scheduled_model(model, plan)
    (op,) = schedule_ops(scheduled)

    new = with_properties(op, {"CPU": {"NUM_STREAMS": "4", "PERF_COUNT": "YES"}, "NPU": {"TURBO": "YES"}})

    assert lanes_of(new) == [
        Lane.of("CPU", {"NUM_STREAMS": "0", "PERF_COUNT": "YES"}),
        Lane.of("GPU", {"NUM_STREAMS": "0"}),
    ]
    (found,) = schedule_ops(scheduled)
    assert found.get_instance_id() == new.get_instance_id()
    assert scheduled.outputs[0].names == model.outputs[0].names
