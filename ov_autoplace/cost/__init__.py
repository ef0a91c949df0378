"""What running a group on a device and crossing devices costs."""

from ov_autoplace.cost.table import CostTable

__all__ = ["CostTable"]
