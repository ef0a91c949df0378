"""Placement policies: what they see of a cost table, their networks, checkpoints, runs without torch."""
