"""Each rule that groups must follow, on a model made for it."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import openvino as ov
from graph_models import (
    bounded_dimension,
    decompression,
    shared_constant,
    shared_dynamic_shape,
    state,
    static_shape_chain,
    tied_decompression,
)
from openvino import opset13 as ops

from ov_autoplace.graph.extract import extract
from ov_autoplace.graph.rules import MUST_RULES, GraphView, Rule
from ov_autoplace.graph.rules.boundaries import parameters_with_consumer, results_with_producer
from ov_autoplace.graph.rules.constants import constants_with_consumer
from ov_autoplace.graph.rules.fused import fused_together
from ov_autoplace.graph.rules.uncuttable import uncuttable_tensors
from ov_autoplace.graph.rules.variables import variables_with_accesses


def pairs(rule: Rule, model: ov.Model) -> set[tuple[str, str]]:
    view = GraphView(extract(model))
    return {(view.graph.names[a], view.graph.names[b]) for a, b in rule(view).tolist()}


def among(found: Iterable[tuple[str, str]], *names: str) -> set[tuple[str, str]]:
    return {pair for pair in found if pair[0] in names}


def test_a_constant_joins_the_first_of_its_consumers_only() -> None:
    assert pairs(constants_with_consumer, shared_constant()) == {("weight", "use0")}


def test_a_decompression_chain_joins_its_consumer_link_by_link() -> None:
    found = pairs(constants_with_consumer, decompression())
    assert among(found, "f16", "half") == {("f16", "half"), ("half", "use_half")}
    assert among(found, "centred", "scaled") == {("centred", "scaled"), ("scaled", "use_second")}


def test_a_decompression_chain_with_two_readers_joins_the_first() -> None:
    assert among(pairs(constants_with_consumer, tied_decompression()), "half") == {("half", "use_half")}


def test_a_transposed_constant_stays_with_its_consumer() -> None:
    x = ops.parameter([2, 8], np.float32, name="x")
    weight = ops.transpose(ops.constant(np.ones((5, 8), np.float32)), ops.constant([1, 0]))
    weight.set_friendly_name("turned")
    product = ops.matmul(x, weight, False, False)
    product.set_friendly_name("product")
    assert ("turned", "product") in pairs(constants_with_consumer, ov.Model([ops.result(product)], [x]))


def test_a_parameter_joins_the_first_op_that_reads_its_values() -> None:
    assert pairs(parameters_with_consumer, shared_dynamic_shape()) == {("x", "in0")}


def test_a_parameter_that_is_only_measured_joins_what_measures_it() -> None:
    x = ops.parameter([2, 8], np.float32, name="x")
    shape = ops.shape_of(x)
    shape.set_friendly_name("shape")
    assert pairs(parameters_with_consumer, ov.Model([ops.result(shape)], [x])) == {("x", "shape")}


def test_a_result_joins_its_producer() -> None:
    model = static_shape_chain()
    result = model.get_results()[0].get_friendly_name()
    assert pairs(results_with_producer, model) == {("third", result)}


def test_the_accesses_of_a_variable_join() -> None:
    assert pairs(variables_with_accesses, state()) == {("read", "write")}


def test_a_model_without_variables_has_no_such_pairs() -> None:
    assert pairs(variables_with_accesses, decompression()) == set()


def test_a_static_shape_chain_joins_the_op_it_feeds_but_not_what_it_measures() -> None:
    assert pairs(uncuttable_tensors, static_shape_chain()) == {
        ("shape", "rows"),
        ("rows", "pattern"),
        ("pattern", "flat"),
    }


def test_a_partly_known_pattern_keeps_its_whole_chain() -> None:
    found = pairs(uncuttable_tensors, shared_dynamic_shape())
    assert {("shape", "size0"), ("size0", "split0"), ("split0", "heads0"), ("size1", "join1")} <= found
    assert not any(first == "x" for first, _ in found)


def test_a_bounded_dimension_ties_nobody_because_it_is_opened_where_it_crosses() -> None:
    assert pairs(uncuttable_tensors, bounded_dimension()) == set()


def test_ops_that_a_device_fused_join_and_unknown_names_are_skipped() -> None:
    graph = extract(shared_constant())
    fused = [["use0", "invented", "relu0"], ["use1"], ["nothing", "known"]]
    found = fused_together(GraphView(graph), fused, np.full(len(graph), -1, np.int32))
    of = graph.index
    assert [group.tolist() for group in found] == [[[of["use0"], of["relu0"]]]]


def test_ops_that_are_pinned_apart_are_not_fused() -> None:
    graph = extract(shared_constant())
    pin_of = np.full(len(graph), -1, np.int32)
    pin_of[graph.index["relu0"]] = 0
    assert fused_together(GraphView(graph), [["use0", "relu0"]], pin_of) == []


def test_every_rule_answers_with_pairs_of_int32_even_on_the_smallest_model() -> None:
    x = ops.parameter([1], np.float32)
    view = GraphView(extract(ov.Model([ops.result(x)], [x])))
    for rule in MUST_RULES:
        found = rule(view)
        assert found.dtype == np.int32
        assert found.shape[1:] == (2,)
