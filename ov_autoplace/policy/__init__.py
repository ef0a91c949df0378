"""The policies of HSDAG and GDP: what they see of a problem, their configurations and checkpoints.

Imports ``problem`` and below. The networks themselves, with torch, are one package further, in ``networks``.
"""
