"""Placement policies: what they see of a cost table, their networks, checkpoints, and running without torch."""
