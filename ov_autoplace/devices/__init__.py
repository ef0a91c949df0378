"""What this machine has: devices, the ops they support, its speed now; and how models are read.

Imports ``_base``.
"""
