"""A device for every op: how HETERO cuts it, whether it can run, what it costs, and its way into models.

Imports ``cost`` and below.
"""
