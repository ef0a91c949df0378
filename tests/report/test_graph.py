"""The drawing of the placement: all of it is in its frame."""

from __future__ import annotations

import numpy as np
import pytest

from ov_autoplace.explain.explanation import Explanation
from ov_autoplace.report.nodes import drawn_graph
from report_tables import chain_with_skips, layered_table, pieces

pytestmark = pytest.mark.bokeh


@pytest.mark.parametrize("groups", [3, 30, 400])
@pytest.mark.parametrize("kind", [chain_with_skips, layered_table])
def test_edges_over_others_stay_in_the_frame(kind, groups):
    from ov_autoplace.report.graph import graph_chart

    table = kind(groups)
    explanation = Explanation(table, pieces(groups, 3))
    chart = graph_chart(explanation, drawn_graph(explanation), explanation.all_groups())

    arcs = [r.data_source.data for r in chart.renderers if type(r.glyph).__name__ == "Quadratic"]
    assert arcs or kind is layered_table
    for arc in arcs:
        middle = (np.array(arc["y0"]) + 2 * np.array(arc["cy"]) + np.array(arc["y1"])) / 4
        assert chart.y_range.start < middle.min()
        assert middle.max() < chart.y_range.end
