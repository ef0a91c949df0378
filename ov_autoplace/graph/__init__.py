"""Computation graphs: extraction from ``ov.Model`` and coarsening into co-location groups."""

from ov_autoplace.graph.computation_graph import CoarseGraph, ComputationGraph

__all__ = ["CoarseGraph", "ComputationGraph"]
