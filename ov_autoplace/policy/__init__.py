"""The learned policy at run time, without torch: what it sees of a problem, its card, its inference.

Imports ``measure`` and below. The networks themselves are one package further, in ``networks``.
"""
