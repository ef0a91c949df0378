"""From ``openvino.Model`` to a computation graph and its groups, by rules of one file each; where ops run.

Imports ``devices`` and below.
"""

from ov_autoplace.graph.coarsen import coarsen
from ov_autoplace.graph.computation_graph import CoarseGraph, ComputationGraph
from ov_autoplace.graph.extract import extract
from ov_autoplace.graph.inputs import input_ranges
from ov_autoplace.graph.shapes import with_static_shapes

__all__ = [
    "CoarseGraph",
    "ComputationGraph",
    "coarsen",
    "extract",
    "input_ranges",
    "with_static_shapes",
]
