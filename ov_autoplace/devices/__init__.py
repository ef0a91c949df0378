"""What this machine has: devices, its speed now; and how models are read.

Imports ``_base``.
"""
