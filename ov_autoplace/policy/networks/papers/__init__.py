"""The parts that HSDAG's and GDP's networks are made of; the base network uses none of them.

Imports what graphs look like in batches from ``networks``.
"""
