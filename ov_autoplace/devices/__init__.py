"""What this machine has: names and properties of devices, the ops they support, its speed now; reading models.

Imports ``_base``.
"""
