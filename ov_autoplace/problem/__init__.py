"""What a solver is asked: a cost table under constraints, in units that stay together, and how answers score.

Imports ``placement`` and below.
"""
