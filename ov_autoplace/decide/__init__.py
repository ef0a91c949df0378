"""The algorithm: options, candidates, the race, the verdict, and the placer that leads through them.

Imports ``solvers`` and below.
"""
