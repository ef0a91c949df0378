"""From ``openvino.Model`` to a computation graph and its groups, by rules of one file each; where ops run.

Imports ``devices`` and below.
"""
