"""Everything that runs a model to learn from it, in a child process: profiles, transfers, crossings, targets.

Imports ``problem`` and below.
"""
