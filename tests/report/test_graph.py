"""The drawing of the placement: all of it is in its frame."""

from __future__ import annotations

import numpy as np
import pytest

from ov_autoplace.explain.hetero import HeteroExplanation
from ov_autoplace.report.nodes import drawn_graph
from report_tables import chain_with_skips, layered_table, pieces

pytestmark = pytest.mark.bokeh


@pytest.mark.parametrize("groups", [3, 30, 400])
@pytest.mark.parametrize("kind", [chain_with_skips, layered_table])
def test_edges_over_others_stay_in_the_frame(kind, groups):
    from ov_autoplace.report.graph import graph_chart

    table = kind(groups)
    explanation = HeteroExplanation(table, pieces(groups, 3))
    chart = graph_chart(explanation, drawn_graph(explanation), explanation.all_groups())

    arcs = [r.data_source.data for r in chart.renderers if type(r.glyph).__name__ == "Quadratic"]
    assert arcs or kind is layered_table
    for arc in arcs:
        middle = (np.array(arc["y0"]) + 2 * np.array(arc["cy"]) + np.array(arc["y1"])) / 4
        assert chart.y_range.start < middle.min()
        assert middle.max() < chart.y_range.end


def test_the_legend_names_devices_in_their_order_and_only_those_that_run_something():
    from ov_autoplace.report.graph import graph_chart

    table = layered_table(40)
    for assignment, shown in ((1 - pieces(40, 3), ["GPU", "CPU"]), (0 * pieces(40, 3), ["GPU"])):
        explanation = HeteroExplanation(table, assignment.astype(np.int32))
        drawn = drawn_graph(explanation)
        chart = graph_chart(explanation, drawn, explanation.all_groups())

        items = chart.legend[0].items
        assert [item.label.value for item in items] == shown
        assert [table.devices[drawn.device[item.index]] for item in items] == shown
