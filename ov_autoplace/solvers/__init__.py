"""Solvers: pure functions from a cost table and constraints to a placement."""
