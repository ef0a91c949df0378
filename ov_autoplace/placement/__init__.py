"""Placements, how they were decided, and their way into files and models."""

from ov_autoplace.placement.placement import Placement, Schedule

__all__ = ["Placement", "Schedule"]
