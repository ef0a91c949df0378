"""The networks that are trained, of the parts of HSDAG and GDP, and how they are saved; with torch.

Imports the rest of ``policy``.
"""
