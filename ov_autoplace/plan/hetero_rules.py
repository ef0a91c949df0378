"""Which of the sets of rules that HETERO had so far is that of the OpenVINO in this process."""

from __future__ import annotations

from ov_autoplace._base.releases import HeteroRules, facts

__all__ = ["hetero_rules"]


def hetero_rules() -> HeteroRules:
    """The rules by which HETERO cuts models here."""
    return facts().hetero_rules
